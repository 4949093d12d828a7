"""The form of a reservation: days of the week, first and last day, hours and time zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ...errors import InvalidInput
from ...groups.calendar import day, read_when
from ...records.calendar import WEEKDAYS
from ...schemas import parsers
from ...schemas.calendar import ReservationIn, ReservationOut
from .fields import clock, read

DAY = "on-"
"""Prefix of the checkboxes of the weekdays: ``on-Mon``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationForm:
    """The fields as entered.

    Attributes:
        id: of the reservation that is edited; empty for a new one.
        days: selected weekdays; none for a reservation of the first day only.
        zone: of the hours.
    """

    id: str = ""
    group: str = ""
    devices: str = ""
    days: tuple[str, ...] = ()
    first: str = ""
    until: str = ""
    begins: str = ""
    ends: str = ""
    zone: str = ""
    why: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> Self:
        def entry(name: str, most: int = 100) -> str:
            return fields.get(name, "").strip()[:most]

        return cls(
            id=entry("name", 64),
            group=entry("group", 64),
            devices=entry("devices"),
            days=tuple(name for name in WEEKDAYS if entry(DAY + name)),
            first=entry("first", 10),
            until=entry("until", 10),
            begins=entry("begins", 8),
            ends=entry("ends", 8),
            zone=entry("zone", 64),
            why=entry("why", 500),
        )

    @classmethod
    def of(cls, reservation: ReservationOut) -> Self:
        times = read_when(reservation.when)
        return cls(
            id=reservation.id,
            group=reservation.group,
            devices=str(reservation.devices),
            days=tuple(WEEKDAYS[number] for number in times.weekdays),
            first=reservation.first,
            until=reservation.until if times.weekdays else "",
            begins=f"{times.begins:%H:%M}",
            ends=f"{times.ends:%H:%M}",
            zone=times.zone,
            why=reservation.why,
        )

    def body(self) -> ReservationIn:
        """Return the body of the request. Raises InvalidInput with the field."""
        if not self.days and not self.first:
            raise InvalidInput(
                "The reservation has no day.",
                accepted="Select days of the week, or a first day for a single time.",
                field="first",
            )
        days = ",".join(self.days) or day(self.first, "first").isoformat()
        begins, ends = (clock(getattr(self, name), name) for name in ("begins", "ends"))
        zone = read(parsers.time_zone, self.zone, "zone")
        return ReservationIn(
            group=self.group or "?",
            devices=read(lambda text: parsers.devices(text, least=1), self.devices, "devices"),
            when=f"{days} {begins:%H:%M}-{ends:%H:%M} {zone.key}",
            first=self.first if self.days else "",
            until=self.until,
            why=self.why,
        )
