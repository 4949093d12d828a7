"""Snapshot in, plan out: the values of a decision."""
