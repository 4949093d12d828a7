"""Which parts of a machine a test needs: missing ones skip here and fail in CI.

``CARREL_REQUIRE`` is a comma list (``browser,gcc``); what it names must be there.
"""

from __future__ import annotations

import os

import pytest


def need(part: str, present: object, reason: str) -> None:
    """Skip with the reason where ``part`` is absent, or fail where it is required."""
    if present:
        return
    if part in os.environ.get("CARREL_REQUIRE", "").split(","):
        pytest.fail(f"CARREL_REQUIRE names {part!r}: {reason}")
    pytest.skip(reason)
