"""The clock that the service is given."""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch (UTC)."""
