"""Nbgrader's gradebook: written apart, read without opening it."""
