"""Leaderboards: students submit weights of one architecture, which are scored on hidden data."""
