"""JSON in one form, so that the same values always have the same bytes to sign or to hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput


def canonical(value: object) -> bytes:
    """Return a JSON value in UTF-8 with sorted keys, without spaces.

    Numbers are written as by ``json`` of Python: the shortest digits that read back the same.
    NaN and infinities, which occur in notebooks, have the names that Python gives them.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def parse_object(content: bytes, what: str) -> dict[str, Any]:
    """Return a JSON object without ambiguity: a name that occurs twice is refused.

    Args:
        what: the noun for the message.

    Raises:
        InvalidInput: it is no JSON object.
    """
    try:
        found = json.loads(content, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not valid JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{what} is not a JSON object.")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in the same object")
    return found
