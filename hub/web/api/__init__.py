"""REST routes, by feature."""
