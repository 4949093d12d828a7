"""Sentences that contain times of day, as values, so that each reader sees the local time.

Pages, widgets and the command line insert the times in the reader's zone and format and write the
text around them unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from ..scheduling.model.plan import Reason
from ..schemas.calendar import ReservationOut
from ..schemas.explanation import WhyOut
from .units import devices

_INTERVAL_SECONDS = 60.0
"""A shorter interval is shown as one time."""

Show = Literal["clock", "coming"]
"""clock: ``14:05``, with the day unless it is today. coming: ``14:05 (in about 2 h)``, and
``any moment`` when it is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedText:
    """A sentence, or part of a sentence, around one time of day.

    Attributes:
        before, after: the text on both sides of the time, with the spaces.
        at: the time, in UTC; None for text without a time.
        show: how the time is written.
    """

    before: str
    at: float | None = None
    after: str = ""
    show: Show = "clock"


TimedSentence = tuple[TimedText, ...]
"""The parts of a sentence in order; empty for no sentence."""


class ExpectedStart(Protocol):
    """A value with an expected start: a wait, a queue entry, a quote."""

    @property
    def expected_at(self) -> float | None: ...
    @property
    def latest_at(self) -> float | None: ...


def expected_start(start: ExpectedStart, now: float) -> TimedSentence:
    """``Expected start: 14:05 (in about 2 h), at the latest 16:05.``

    Times in the past are shown as now.
    """
    if start.expected_at is None:
        return ()
    at = max(start.expected_at, now)
    latest = at if start.latest_at is None else max(start.latest_at, now)
    prefix = "Expected start: "
    if latest - at < _INTERVAL_SECONDS:
        return (TimedText(before=prefix, at=at, after=".", show="coming"),)
    return (
        TimedText(before=prefix, at=at, show="coming"),
        TimedText(before=", at the latest ", at=latest, after="."),
    )


def expected_start_or_unknown(why: WhyOut, now: float) -> TimedSentence:
    """Return the expected start of a waiting request, or a sentence that there is no estimate."""
    if why.wait is None or why.wait.reason == Reason.DEPENDENCY:
        return ()
    unknown = TimedText(before="The start cannot be estimated yet.")
    return expected_start(why.wait, now) or (unknown,)


def timed_reasons(why: WhyOut) -> tuple[TimedSentence, ...]:
    """Return the reasons with a time: the period of a reservation, the renewal of a budget."""
    sentences: list[TimedSentence] = []
    if why.reserved_from is not None:
        sentences.append(
            (
                TimedText(before="Reserved from ", at=why.reserved_from),
                TimedText(before=" to ", at=why.reserved_until, after="."),
            )
        )
    if why.refills_at is not None:
        sentences.append(
            (TimedText(before="The budget is renewed: ", at=why.refills_at, after="."),)
        )
    return tuple(sentences)


def reservation(reserved: ReservationOut) -> TimedText:
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


def as_json(parts: Sequence[TimedText]) -> list[JsonValue]:
    """Return the parts as JSON, for widgets."""
    return [asdict(part) for part in parts]
