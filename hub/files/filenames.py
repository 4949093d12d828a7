"""File names for users, servers, drafts and long names; distinct names give distinct ones."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePath

NAME_BYTES = 255
"""Max length of a file name on most file systems, in bytes."""
_SIMPLE = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
_LONGEST_SIMPLE = 40
_LONGEST_READABLE = 24
_LONGEST_SUFFIX = 32
_HASH_DIGITS = 16
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


def shortened(name: str, most: int = NAME_BYTES) -> str:
    """Return a file name of at most so many bytes; a short one does not change.

    The suffix is kept, and a hash of the whole name tells it from others that begin alike.
    """
    content = name.encode("utf-8", "surrogatepass")
    if len(content) <= most:
        return name
    suffix = PurePath(name).suffix
    if len(suffix.encode("utf-8", "surrogatepass")) > _LONGEST_SUFFIX:
        suffix = ""
    end = f"-{hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]}{suffix}"
    stem = content[: most - len(end.encode("utf-8", "surrogatepass"))].decode("utf-8", "ignore")
    return stem + end


def numbered(name: str) -> Iterator[str]:
    """Yield a file name and its further forms: ``train.ipynb``, ``train-1.ipynb``, … for ever."""
    yield name
    path = PurePath(name)
    for number in count(1):
        yield shortened(f"{path.stem}-{number}{path.suffix}")


def draft_beside(path: Path) -> Path:
    """Return the hidden name under which this process writes a file before it is complete.

    It is short: the name of the file itself may be as long as the file system permits.
    """
    digest = hashlib.sha256(path.name.encode("utf-8", "surrogatepass")).hexdigest()
    return path.with_name(f".{digest[:_HASH_DIGITS]}.part-{os.getpid()}")
