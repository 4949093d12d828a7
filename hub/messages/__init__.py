"""The message catalogue: every sentence that several interfaces show."""
