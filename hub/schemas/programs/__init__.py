"""Bodies of programs."""
