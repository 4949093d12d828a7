"""One decision: dispatch, reclaim, estimate; and the same incrementally."""
