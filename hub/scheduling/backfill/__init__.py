"""Who may start although somebody ahead waits."""
