"""JSON values: parsing of text that is not trusted, and conversion to plain containers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"

MAX_DEPTH = 100
"""Of JSON that is not trusted. Most code that handles JSON later is recursive and fails at a few
hundred levels; figures of plotting libraries have fewer than twenty."""


def parse_json(text: str | bytes) -> object:
    """Parse JSON of at most ``MAX_DEPTH`` levels. Raises ValueError."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    check_depth(value)
    return value


def check_depth(value: object) -> None:
    """Raise ValueError for a value of more than ``MAX_DEPTH`` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for container in level for item in _items(container)]
    if any(isinstance(item, dict | list | tuple) for item in level):
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def plain(values: Mapping[str, Json]) -> dict[str, object]:
    """Convert to dicts and lists, which pydantic's JSON type needs."""
    return {key: plain_value(value) for key, value in values.items()}


def plain_value(value: Json) -> object:
    if isinstance(value, str) or value is None or isinstance(value, int | float | bool):
        return value
    if isinstance(value, Mapping):
        return plain(value)
    return [plain_value(item) for item in value]
