"""Sentences of a wait with times of day in them, as values: each reader sees their own clock.

They are worded here and nowhere else. Pages, views and the command line put the moments in, in the
reader's zone and format, and write what stands around them as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from ..schemas.calendar import ReservationOut
from ..schemas.explanation import WhyOut
from .units import devices

_INTERVAL_SECONDS = 60.0
"""Two ends that are closer are one time."""

Show = Literal["clock", "coming"]
"""clock: ``14:05``, with the day unless it is today. coming: ``14:05 (in about 2 h)``, and
``any moment`` once it is here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedText:
    """A sentence with a time of day in it, or a part of one.

    Attributes:
        before, after: what stands on both sides of the time, with the spaces.
        at: the time, in UTC; None where there is none to be told.
        show: how it is told.
    """

    before: str
    at: float | None = None
    after: str = ""
    show: Show = "clock"


Dated = tuple[TimedText, ...]
"""A sentence, from its parts in their order; empty where there is nothing to say."""


class ExpectedStart(Protocol):
    """Whatever is expected to start: a wait, a row of the queue, a quote."""

    @property
    def expected_at(self) -> float | None: ...
    @property
    def latest_at(self) -> float | None: ...


def expected_words(start: ExpectedStart, now: float) -> Dated:
    """``Expected start: 14:05 (in about 2 h), at the latest 16:05.``

    What has passed is told as now, not as a time that lies behind.
    """
    if start.expected_at is None:
        return ()
    at = max(start.expected_at, now)
    latest = at if start.latest_at is None else max(start.latest_at, now)
    told = "Expected start: "
    if latest - at < _INTERVAL_SECONDS:
        return (TimedText(before=told, at=at, after=".", show="coming"),)
    return (
        TimedText(before=told, at=at, show="coming"),
        TimedText(before=", at the latest ", at=latest, after="."),
    )


def start_words(why: WhyOut, now: float) -> Dated:
    """The same, to whoever asks why it waits: also that it cannot be told."""
    if why.wait is None:
        return ()
    unknown = TimedText(before="When it will start cannot be told yet.")
    return expected_words(why.wait, now) or (unknown,)


def reason_words(why: WhyOut) -> tuple[Dated, ...]:
    """What of its reasons has a time: the reservation's span, and when a budget is full again."""
    said: list[Dated] = []
    if why.reserved_from is not None:
        said.append(
            (
                TimedText(before="Reserved from ", at=why.reserved_from),
                TimedText(before=" to ", at=why.reserved_until, after="."),
            )
        )
    if why.refills_at is not None:
        said.append((TimedText(before="The budget is full again: ", at=why.refills_at, after="."),))
    return tuple(said)


def reserved_words(reserved: ReservationOut) -> TimedText:
    """``8 devices are reserved for cs101 from`` … ``(Tue 10:00-12:00 Europe/Berlin): the lab``."""
    verb = "is" if reserved.devices == 1 else "are"
    since = "until" if reserved.running else "from"
    why = f": {reserved.why}" if reserved.why else ""
    return TimedText(
        before=f"{devices(reserved.devices).capitalize()} {verb} reserved for {reserved.group} "
        f"{since} ",
        at=reserved.ends_at if reserved.running else reserved.starts_at,
        after=f" ({reserved.when}){why}",
    )


def dated_facts(parts: Sequence[TimedText]) -> list[JsonValue]:
    return [asdict(part) for part in parts]
