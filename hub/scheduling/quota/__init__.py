"""Quota on the tree of groups: guarantees, limits, borrowing, budgets and charges."""
