"""Courses: rosters, assignments, submissions, grading on the pool and feedback."""

from __future__ import annotations
