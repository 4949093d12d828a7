"""Explain why a request waits or can never run, and what would change that."""
