"""Sandboxes: run the code of submissions without access to the service or the network."""

from __future__ import annotations
