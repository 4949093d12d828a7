"""Notebooks as documents: read, match cells, merge, imports."""
