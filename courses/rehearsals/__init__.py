"""Rehearsals: every solution and hand-out of a course, run on a candidate image before term."""
