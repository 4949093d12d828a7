"""Usage sums of the ledger by day, model and group, decayed usage, and utilization of the pool."""
