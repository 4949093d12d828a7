"""Usage summed from the ledger: by day, model and group; decayed; levels of the pool."""
