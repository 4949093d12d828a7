"""Detect devices that fail or slow down, from their readings and the jobs on them."""
