"""Show the roster of a course and replace it from a table."""

from __future__ import annotations

_UNCHANGED = "Nothing changes."
