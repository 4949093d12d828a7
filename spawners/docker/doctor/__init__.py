"""Checks of a Docker engine for ``carrel doctor``."""
