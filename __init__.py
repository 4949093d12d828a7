"""Carrel: notebook sessions and batch notebook jobs on one shared GPU pool."""

from __future__ import annotations

__version__ = "0.1.0"
