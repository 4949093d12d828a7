"""The words of the audit list for what was changed, the same on its page and in its command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..scheduling.model.text import hours
from .requests import state
from .units import duration

_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "parent": "group above it",
        "max_devices": "devices at one time",
        "max_devices_per_user": "devices per member",
        "max_seconds": "longest time limit",
        "idle_seconds": "idle sessions are warned after",
        "admin": "administrator",
        "seconds": "more time",
    }
)
"""What was changed, as the forms call it."""
_NOTHING: Mapping[str, str] = MappingProxyType(
    {
        "parent": "none",
        "teachers": "nobody",
        "budget": "none",
        "until": "no last day",
        "due": "no date",
        "archived_at": "never",
    }
)
_STOPPED = "what is left is stopped"
"""What the moment means at which a drain ends; of anything else, ``until`` is a day."""


def differences(
    before: Mapping[str, object], after: Mapping[str, object], moment: Callable[[float], str]
) -> list[tuple[str, tuple[str, ...]]]:
    """What was changed, with the values of both sides.

    What did not exist before, or does not any more, has one side. ``moment`` writes times.
    """
    sides = [side for side in (before, after) if side]
    names = dict.fromkeys(name for side in sides for name in side)
    found = []
    for name in names:
        values = [side.get(name) for side in sides]
        words = tuple(_value(name, value, moment) for value in values)
        found.append((_field(name, values), words))
    return found


def _field(name: str, values: list[object]) -> str:
    if name == "until" and any(isinstance(value, int | float) for value in values):
        return _STOPPED
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
            return state(value)
        case _:
            return str(value)
