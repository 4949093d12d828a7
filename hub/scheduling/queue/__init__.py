"""The queue: its order, fair share, and the state of a scheduling cycle."""
