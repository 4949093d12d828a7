"""The calls, by feature."""
