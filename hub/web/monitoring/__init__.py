"""Metrics, readiness, ids of calls."""
