"""Notebooks as documents: read, match cells, merge versions, find imports."""
