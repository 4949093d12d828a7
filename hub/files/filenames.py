"""Names of people and servers as names of files: readable, and never two for one."""

from __future__ import annotations

import base64
import hashlib
import re

_SIMPLE = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
_LONGEST_SIMPLE = 40
_LONGEST_READABLE = 24
_MARK = "-."
"""Between the readable part and the hash of an escaped name; no simple name holds it."""


def safe_name(name: str) -> str:
    """Return a file name for any name: distinct names give distinct results.

    Simple names stay as they are. Everything else keeps what can be read and gets 130 bits
    of its hash. The result holds only ``a-z0-9._-``, starts with a letter or digit, is at
    most 52 characters long, and never holds ``--``, which may therefore join two of them.
    """
    simple = _SIMPLE.fullmatch(name) and len(name) <= _LONGEST_SIMPLE
    if simple and "--" not in name and _MARK not in name:
        return name
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST_READABLE].strip("-") or "x"
    # Names from outside may hold lone surrogates; they too need a hash of their own.
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return readable + _MARK + base64.b32encode(digest).decode().lower()[:26]
