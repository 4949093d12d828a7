"""TODO."""

from __future__ import annotations

_UNCHANGED = "Nothing changes."
