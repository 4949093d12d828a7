"""Assignments as folders on a student's disk: fetch, merge and submit."""
