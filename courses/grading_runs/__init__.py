"""Grading as a request on the pool, and the process that does it."""
