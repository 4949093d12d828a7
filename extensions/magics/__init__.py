"""%carrel."""
