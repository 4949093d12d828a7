"""Replay of a trace: event loop, metrics, comparison of policies, and reports."""
