"""Assignments released, listed and fetched; how they stand."""
