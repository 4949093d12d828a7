"""Devices, nodes and images of the pool: show, choose, drain, quarantine."""
