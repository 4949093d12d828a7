"""JSON values, and dataclasses turned into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"


def plain(values: Mapping[str, Json]) -> dict[str, object]:
    """Convert to dicts and lists, which pydantic's JSON type needs."""
    return {key: plain_value(value) for key, value in values.items()}


def plain_value(value: Json) -> object:
    if isinstance(value, str) or value is None or isinstance(value, int | float | bool):
        return value
    if isinstance(value, Mapping):
        return plain(value)
    return [plain_value(item) for item in value]
