"""Turn what was sent into a request that may be stored, or reject it with advice."""
