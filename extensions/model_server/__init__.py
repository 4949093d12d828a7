"""Serve models and functions over HTTP from a session or job: ``carrel serve``."""
