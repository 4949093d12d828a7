"""What only administrators do, with the right checked; the audit list."""
