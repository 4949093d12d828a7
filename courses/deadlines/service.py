"""Extend deadlines for a person or a section, and record outages."""

from __future__ import annotations

from ...hub.errors import InvalidInput

LONGEST_OUTAGE = 31 * 86400.0


def _check_whose(person: str, section: str) -> None:
    if bool(person) == bool(section):
        raise InvalidInput(
            "An extension is for one person or for one section.",
            accepted="One of the two.",
            field="person",
        )
