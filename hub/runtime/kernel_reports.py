"""The newest kernel activity that each session reported."""

from __future__ import annotations

TOLD_SECONDS = 60.0
"""For how long what a session told of its kernels counts; it tells four times as often."""
