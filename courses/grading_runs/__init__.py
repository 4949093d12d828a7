"""Grading runs and checks as requests on the pool, and the workers that execute them."""
