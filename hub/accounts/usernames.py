"""User names: one rule for accounts, rosters, groups, pages and commands.

It follows JupyterHub, which takes nearly everything from a sign-in system: ``a+b@x.edu``,
``o'brien``, ``_x``, ``ünal``. Refused is what could not be told apart or named: hidden characters,
and those that have a meaning in paths, patterns and lists.
"""

from __future__ import annotations

import unicodedata

from ..errors import InvalidInput
from ..schemas.names import USER_LENGTH, hidden_in, is_mark

_RESERVED = frozenset("/,*?[]")
_SHOWN = 200
ACCEPTED = (
    f"A name has 1 to {USER_LENGTH} bytes: letters and digits of any script, and punctuation other "
    f"than {' '.join(sorted(_RESERVED))}; it does not begin with a dot or a hyphen."
)


def normalise(name: str) -> str:
    """Return the one spelling of a name; it need not be valid.

    In lower case, as JupyterHub does it, without surrounding blanks, and composed: keyboards and
    file systems give the same letter as one character or as two.
    """
    return unicodedata.normalize("NFC", name.strip().lower())


def is_valid(name: str) -> bool:
    """Return whether a normalized name is a user name."""
    if hidden_in(name) or not name or name != name.strip():
        return False
    if name[0] in ".-" or is_mark(name[0]) or _RESERVED & set(name):
        return False
    if not any(map(str.isalnum, name)):
        return False
    return len(name.encode()) <= USER_LENGTH


def parse_name(name: str) -> str:
    """Return the normalized name.

    Raises:
        InvalidInput: it is not a valid username.
    """
    check_name(name)
    return normalise(name)


def check_name(name: str) -> None:
    """Raise InvalidInput for a name that no user can have.

    Some sign-in systems keep upper case, so that names from elsewhere are checked and not changed.
    """
    if not is_valid(normalise(name)):
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
        raise InvalidInput(f"{shown!r} is not a valid username.", accepted=ACCEPTED)


def split_names(text: str) -> list[str]:
    """Return the names of a list: separated by commas or, without a comma, by blanks."""
    parts = text.split(",") if "," in text else text.split()
    return [part.strip() for part in parts if part.strip()]
