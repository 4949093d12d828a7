"""Secrets of users and groups: encrypted values that jobs and sessions reach by name."""
