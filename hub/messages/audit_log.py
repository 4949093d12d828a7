"""Names and values of changes in the audit log, the same on the page and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..scheduling.model.text import hours
from .requests import state_name
from .units import duration

_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "parent": "parent group",
        "max_devices": "max quota",
        "max_devices_per_user": "max devices per member",
        "max_seconds": "max time limit",
        "idle_seconds": "idle warning after",
        "admin": "administrator",
        "seconds": "extension",
    }
)
"""Fields by the labels of the forms."""
_NOTHING: Mapping[str, str] = MappingProxyType(
    {
        "parent": "none",
        "teachers": "none",
        "budget": "none",
        "until": "no end date",
        "due": "no due date",
        "archived_at": "never",
    }
)
_DRAIN_END = "remaining work is stopped"
"""Label of ``until`` of a drain, which is a moment; elsewhere ``until`` is a day."""


def differences(
    before: Mapping[str, object], after: Mapping[str, object], moment: Callable[[float], str]
) -> list[tuple[str, tuple[str, ...]]]:
    """Return each changed field with its values before and after.

    Something created or removed has one value a field. ``moment`` formats times.
    """
    sides = [side for side in (before, after) if side]
    names = dict.fromkeys(name for side in sides for name in side)
    found = []
    for name in names:
        values = [side.get(name) for side in sides]
        texts = tuple(_value(name, value, moment) for value in values)
        found.append((_field(name, values), texts))
    return found


def _field(name: str, values: list[object]) -> str:
    if name == "until" and any(isinstance(value, int | float) for value in values):
        return _DRAIN_END
    return _FIELDS.get(name, name.replace("_", " "))


def _value(name: str, value: object, moment: Callable[[float], str]) -> str:
    match value:
        case None | []:
            return _NOTHING.get(name, "no limit")
        case bool():
            return "yes" if value else "no"
        case int() | float() if name in ("until", "due") or name.endswith("_at"):
            return moment(value)
        case int() | float() if name == "seconds" or name.endswith("_seconds"):
            return duration(value) if value or name != "idle_seconds" else "never"
        case {"device_seconds": int() | float() as amount, "period": str(period)}:
            return f"{hours(amount).removesuffix('.0')} h per {period}"
        case list():
            return ", ".join(map(str, value))
        case str() if name == "state":
            return state_name(value)
        case _:
            return str(value)
