"""Courses: the sample course now; roster, assignments, exchange and grading to come."""

from __future__ import annotations
