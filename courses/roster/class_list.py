"""List the members of a class with the names they are shown by."""

from __future__ import annotations

SHOWN_SECONDS = 30.0
"""How old the hub's list of users may be where nothing is changed by it."""
