"""Pages to submit, list and follow jobs."""
