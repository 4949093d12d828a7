"""The scheduling cycle: dispatch, preemption and estimates; as a whole and incrementally."""
