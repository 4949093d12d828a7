"""Calls to a Docker engine, with timeouts."""
