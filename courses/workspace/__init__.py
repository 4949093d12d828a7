"""Assignments as folders on a student's disk."""
