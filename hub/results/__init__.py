"""Reported values and trials of sweeps as values that pages and widgets show."""
