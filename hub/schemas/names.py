"""Characters of names of people and files: any script, but nothing that hides or reverses text."""

from __future__ import annotations

import unicodedata

USER_LENGTH = 200
"""Max length of a user name, in bytes of UTF-8: it is a part of file names."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories: control, format (bidirectional controls among them), surrogates, private and
unassigned characters, line and paragraph separators."""
_JOINERS = frozenset("\u200c\u200d")
"""Format characters that Hindi, Persian and many other languages are written with."""


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible, reverses text or separates lines."""
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def hidden_in(name: str) -> str:
    """Return the first hidden character of a name; empty if there is none.

    A joiner is hidden where it joins nothing: at the beginning, after another joiner, and after
    ASCII, which it would only make look the same.
    """
    before = ""
    for character in name:
        joins = not before.isascii() and before not in _JOINERS
        if is_hidden(character) or (character in _JOINERS and not joins):
            return character
        before = character
    return ""


def described(character: str) -> str:
    """``U+202E (right-to-left override)``."""
    name = unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


def is_mark(character: str) -> bool:
    """Return whether it is combined with the character before it."""
    return unicodedata.category(character).startswith("M")
