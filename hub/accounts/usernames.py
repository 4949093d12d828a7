"""Names of people: one spelling each, and only what is safe in a path and in a URL."""

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
    """Lower case, no blanks around it. The result need not be valid."""
    return name.strip().lower()


def is_valid(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and ".." not in name


def parse_name(name: str) -> str:
    """The one spelling of a name.

    Raises:
        InvalidInput: it is not a name.
    """
    # A letter outside ASCII may turn into one inside when it is lowered (the Kelvin sign).
    found = normalise(name) if name.isascii() else name
    if not is_valid(found):
        shown = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
        raise InvalidInput(f"{shown!r} is not a name that an account can have.", accepted=ACCEPTED)
    return found
