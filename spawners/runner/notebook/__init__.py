"""Execute a notebook, from its load to its result."""
