"""Device-seconds and wait times of the past: sums, budgets and reports."""
