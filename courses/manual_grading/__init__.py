"""Points and comments that people give."""
