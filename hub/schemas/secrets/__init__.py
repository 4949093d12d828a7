"""Bodies of calls for secrets."""
