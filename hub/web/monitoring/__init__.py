"""Metrics, readiness and the request log."""
