"""The form of a group, as it was filled in: spans as people write them, names by commas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..client import values
from ..errors import InvalidInput
from ..wire.administration import GroupIn, QuotaOut

_MOST = 100_000
_NAMES = 1000
_SPANS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupForm:
    """Its fields as text, ready to be shown again beside what was wrong with them."""

    name: str = ""
    parent: str = ""
    max_devices: str = "0"
    max_devices_per_user: str = "0"
    max_time: str = "8h"
    idle: str = "30m"
    teachers: str = ""

    @classmethod
    def of(cls, group: QuotaOut) -> GroupForm:
        return cls(
            name=group.name,
            parent=group.parent or "",
            max_devices=str(group.max_devices),
            max_devices_per_user=str(group.max_devices_per_user),
            max_time=shown(group.max_seconds),
            idle=shown(group.idle_seconds),
            teachers=", ".join(group.teachers),
        )

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> GroupForm:
        def entry(name: str) -> str:
            return fields.get(name, "").strip()

        return cls(
            name=entry("name").lower(),
            parent=entry("parent"),
            max_devices=entry("max_devices"),
            max_devices_per_user=entry("max_devices_per_user"),
            max_time=entry("max_time"),
            idle=entry("idle"),
            teachers=entry("teachers"),
        )

    def body(self) -> GroupIn:
        """Raises InvalidInput, naming the field."""
        return GroupIn(
            parent=self.parent[:64] or None,
            max_devices=_number(self.max_devices, "max_devices"),
            max_devices_per_user=_number(self.max_devices_per_user, "max_devices_per_user"),
            max_seconds=_span(self.max_time, "max_time"),
            idle_seconds=_span(self.idle, "idle"),
            teachers=[name[:64] for name in self.teachers.replace(",", " ").split()][:_NAMES],
        )


def shown(seconds: int) -> str:
    """As people write it: ``2h``, ``90m``; ``0`` for never."""
    if seconds == 0:
        return "0"
    size, unit = next((size, unit) for size, unit in _SPANS if seconds % size == 0)
    return f"{seconds // size}{unit}"


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:9]) > _MOST:
        raise InvalidInput(
            f"{text[:40]!r} is no number of devices.",
            accepted=f"A whole number from 0 to {_MOST:,}.",
            field=field,
        )
    return int(text)


def _span(text: str, field: str) -> int:
    if text == "0":
        return 0
    try:
        return values.seconds(text)
    except InvalidInput as error:
        raise InvalidInput(error.message, accepted=error.accepted, field=field) from error
