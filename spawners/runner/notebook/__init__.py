"""A notebook from its load to its result."""
