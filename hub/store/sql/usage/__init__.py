"""Sums of the ledger: by day, model, group; decayed; levels."""
