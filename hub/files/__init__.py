"""Homes and outputs on disk; file-system access that follows no link."""
