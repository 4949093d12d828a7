"""Backfill: which requests may start although a request ahead of them waits."""
