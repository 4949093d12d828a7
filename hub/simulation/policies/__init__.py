"""Orders that are compared: Carrel's own and those of the literature."""
