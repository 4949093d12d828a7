"""Replay a trace: event loop, metrics and reports."""
