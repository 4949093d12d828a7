"""Courses made, listed, cloned, archived; their folders in sessions."""
