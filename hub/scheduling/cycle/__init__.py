"""One scheduling cycle from a snapshot to a plan, from scratch and incrementally."""
