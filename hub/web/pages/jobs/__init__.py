"""Submit, list and follow jobs."""
