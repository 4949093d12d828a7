"""Readable file names for users and servers; distinct names give distinct file names."""

from __future__ import annotations

import base64
import hashlib
import re

_SIMPLE = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
_LONGEST_SIMPLE = 40
_LONGEST_READABLE = 24
_MARK = "-."
"""Separates the readable part and the hash of an escaped name; simple names never contain it."""


def safe_name(name: str) -> str:
    """Return a file name for any name: distinct names give distinct results.

    Simple names do not change. Other names keep their readable characters and get 130 bits
    of their hash. The result contains only ``a-z0-9._-``, starts with a letter or digit, has at
    most 52 characters, and never contains ``--``, which may therefore join two results.
    """
    simple = _SIMPLE.fullmatch(name) and len(name) <= _LONGEST_SIMPLE
    if simple and "--" not in name and _MARK not in name:
        return name
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST_READABLE].strip("-") or "x"
    # Names from outside may contain lone surrogates.
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return readable + _MARK + base64.b32encode(digest).decode().lower()[:26]
