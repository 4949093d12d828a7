"""Courses for teachers, graders and students."""
