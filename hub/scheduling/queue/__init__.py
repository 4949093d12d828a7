"""The queue: its order, fair share, and the state of a cycle that it is dispatched against."""
