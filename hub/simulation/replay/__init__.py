"""The event loop of a replay, its metrics, and a comparison of several."""
