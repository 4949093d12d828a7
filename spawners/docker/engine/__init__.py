"""Calls to one Docker engine, with time-outs."""
