"""Limits, guarantees and charges on the tree of groups."""
