"""Usernames: normalized, and restricted to characters that are safe in paths and URLs."""

from __future__ import annotations

import re

from ..errors import InvalidInput
from ..schemas import NAME

_NAME = re.compile(NAME)
_LONGEST = 200
ACCEPTED = (
    "A name has 1 to 64 of the characters a to z, 0 to 9, dot, underscore, @ and hyphen, "
    "and begins and ends with a letter or a digit."
)


def normalise(name: str) -> str:
    """Return the name in lower case without surrounding blanks; it need not be valid."""
    return name.strip().lower()


def is_valid(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and ".." not in name


def parse_name(name: str) -> str:
    """Return the normalized name.

    Raises:
        InvalidInput: it is not a valid username.
    """
    # Lower case can turn a letter outside ASCII into an ASCII one (the Kelvin sign).
    found = normalise(name) if name.isascii() else name
    if not is_valid(found):
        shown = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
        raise InvalidInput(f"{shown!r} is not a valid username.", accepted=ACCEPTED)
    return found
