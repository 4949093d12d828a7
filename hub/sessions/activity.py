"""Record what a session reports of its kernels, and keep an idle session."""

from __future__ import annotations

SLOW_REPORT_SECONDS = 60.0
"""How often a session tells that no idle rule is about."""


_WARNED_REPORT_SECONDS = 5.0
