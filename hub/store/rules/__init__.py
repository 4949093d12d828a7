"""Checks and conversions of the store that need no database."""
