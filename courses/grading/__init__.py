"""Grading of submissions in a sandbox, by nbgrader's rules."""
