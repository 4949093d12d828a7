"""Execute several models on several accelerators, each request before its deadline."""
