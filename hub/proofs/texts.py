"""The text of each leaf of the log, of which the hash is taken, and of each signed head.

A text is JSON in one form: sorted keys, no spaces, ASCII. Files of proofs contain the texts as they
are, so that a verifier in any language hashes bytes and reads JSON, and never writes it.

The hash of a leaf is that of RFC 9162, section 2.1.1: SHA-256 of a zero byte and the text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

FORMAT: Final = 1
_LEAF: Final = b"\x00"


def canonical(value: Mapping[str, object]) -> str:
    """Return the text of a JSON object."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def line_text(
    *,
    log: str,
    index: int,
    table: str,
    line: Mapping[str, object] | None,
    entered_at: float,
    salt: bytes,
) -> str:
    """Return the text of a line.

    Args:
        index: of the leaf in the log of the group, from 0 on.
        line: the columns of the row; None if it was missing when it should have been entered.
        entered_at: when the line was entered, in seconds since 1970.
        salt: random bytes, without which the hash of a short line could be guessed.
    """
    return canonical(
        {
            "entered_at": entered_at,
            "format": FORMAT,
            "index": index,
            "line": None if line is None else dict(line),
            "log": log,
            "salt": salt.hex(),
            "table": table,
        }
    )


def anchor_text(*, log: str, size: int, root: bytes, at: float) -> str:
    """Return the text of a leaf of the main log: the root of a group's log at a size."""
    return canonical({"at": at, "format": FORMAT, "log": log, "root": root.hex(), "size": size})


def head_text(*, site: str, size: int, root: bytes, at: float) -> str:
    """Return the text of a head of the main log, which the site signs."""
    head = {"at": at, "format": FORMAT, "kind": "carrel log head", "root": root.hex()}
    return canonical({**head, "site": site, "size": size})


def leaf_hash(text: str) -> bytes:
    """Return the 32 bytes of the hash of a leaf."""
    return hashlib.sha256(_LEAF + text.encode("ascii")).digest()
