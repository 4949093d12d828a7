"""The order among what waits: priority, fair share, deadline."""
