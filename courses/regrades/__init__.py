"""Requests of students to look at points again."""
