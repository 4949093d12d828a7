"""Device-seconds and waits of the past: sums, budgets, reports and who may see them."""
