"""Skip tests that need a part which the machine lacks, or fail them in CI.

``CARREL_REQUIRE`` is a comma list (``browser,gcc``) of parts that must be present.
"""

from __future__ import annotations

import os

import pytest


def need(part: str, present: object, reason: str) -> None:
    """Skip with the reason if ``part`` is absent, or fail if it is required."""
    if present:
        return
    if part in os.environ.get("CARREL_REQUIRE", "").split(","):
        pytest.fail(f"CARREL_REQUIRE names {part!r}: {reason}")
    pytest.skip(reason)
