"""Compute due dates, lateness and late penalties.

A due date is entered in local time with its time zone and stored as an absolute time: later changes
of zone rules do not move it. Extensions of a student and of the section add up; then outages move
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...hub.errors import InvalidInput
from ...hub.messages import units as messages_units
from ...hub.schemas import LATEST
from ..model.records import Assignment, Extension, LateRule, LateStep, Member, Outage, Submission

DUE_HELP = "2027-02-01 18:00 Europe/Berlin"
LATE_HELP = "24h:-10%, or 1h:-5%,24h:-20%; 'none' counts nothing that is late"
OUTAGE_REACH = 24 * 3600.0
"""Due dates within this many seconds after an outage are moved too: students lost the last day."""
MOST_STEPS = 10
_WHOLE = 100
_DUE = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T]+(?P<clock>\d\d?:\d\d(?::\d\d)?)"
    r"\s+(?P<zone>[A-Za-z0-9_+/-]{1,64})"
)
_STEP = re.compile(r"(?P<span>\d{1,5})(?P<unit>[mhd])\s*:\s*-\s*(?P<part>\d{1,3}(?:\.\d+)?)\s*%")
UNITS = {"d": 86400, "h": 3600, "m": 60}


class LatenessState(StrEnum):
    """Whether a submission is on time."""

    ON_TIME = "on time"
    LATE = "late"
    TOO_LATE = "too late to count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Attributes:
    seconds: after the due date; 0 if on time.
    penalty: the part of the points that it costs, from 0 to 1.
    """

    standing: LatenessState
    seconds: float = 0.0
    penalty: float = 0.0

    @property
    def counts(self) -> bool:
        return self.standing is not LatenessState.TOO_LATE


# -- input ---------------------------------------------------------------------------------


def read_due(text: str) -> tuple[float, str]:
    """``2027-02-01 18:00 Europe/Berlin`` as a moment and its zone.

    Raises:
        InvalidInput: it is malformed, the zone is unknown, or that time does not exist there or
            exists twice (change of the clocks).
    """
    found = _DUE.fullmatch(text.strip())
    if found is None:
        raise _no_due(f"{text[:80]!r} is not a due date.")
    try:
        wall = datetime.fromisoformat(f"{found['day']} {found['clock']:0>5}")
    except ValueError:
        raise _no_due(f"{found['day']} {found['clock']} is not in the calendar.") from None
    try:
        zone = ZoneInfo(found["zone"])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _no_due(f"There is no zone {found['zone']}.") from None
    first, second = wall.replace(tzinfo=zone), wall.replace(tzinfo=zone, fold=1)
    if first.utcoffset() != second.utcoffset():
        never = datetime.fromtimestamp(first.timestamp(), zone).replace(tzinfo=None) != wall
        how = "never" if never else "twice"
        raise _no_due(
            f"On {found['day']} the clock in {found['zone']} shows {found['clock']} {how}."
        )
    at = first.timestamp()
    if not 0 <= at <= LATEST:
        raise _no_due(f"{found['day']} is not between the years 1970 and 2999.")
    return at, found["zone"]


def _no_due(sentence: str) -> InvalidInput:
    return InvalidInput(
        sentence,
        accepted=f"A day, a time by the clock and the zone of that clock: {DUE_HELP}.",
        field="due",
    )


def read_late(text: str) -> LateRule:
    """``24h:-10%``: up to a day late costs a tenth of the points, and later does not count.

    Raises:
        InvalidInput: it is malformed, or a step is not longer than the one before, or costs less.
    """
    given = text.strip()
    if given in {"", "none"}:
        return LateRule()
    steps = tuple(_step(part, text) for part in given.split(","))
    if len(steps) > MOST_STEPS:
        raise _no_rule(f"A rule has at most {MOST_STEPS} steps.")
    for before, after in pairwise(steps):
        if after.seconds <= before.seconds or after.penalty < before.penalty:
            raise _no_rule(f"In {text[:80]!r} a later step is not longer, or costs less.")
    return LateRule(steps=steps)


def _step(part: str, text: str) -> LateStep:
    found = _STEP.fullmatch(part.strip())
    penalty = float(found["part"]) / _WHOLE if found else 0.0
    if found is None or not int(found["span"]) or penalty > 1:
        raise _no_rule(f"{text[:80]!r} is not a rule for late submissions.")
    return LateStep(seconds=int(found["span"]) * UNITS[found["unit"]], penalty=penalty)


def _no_rule(sentence: str) -> InvalidInput:
    return InvalidInput(sentence, accepted=f"Such as {LATE_HELP}.", field="late")


def late_text(rule: LateRule) -> str:
    """The rule in the form in which it is typed."""
    steps = (f"{_span(step.seconds)}:-{step.penalty * _WHOLE:g}%" for step in rule.steps)
    return ",".join(steps) or "none"


def late_sentence(rule: LateRule) -> str:
    """The rule as a sentence for students."""
    if not rule.steps:
        return "What comes late does not count."
    steps = [
        f"up to {_span(step.seconds)} late costs {step.penalty * _WHOLE:g} %" for step in rule.steps
    ]
    said = ", ".join(steps)
    return f"{said[0].upper()}{said[1:]} of the points; later does not count."


def _span(seconds: int) -> str:
    """A duration in its largest unit; days only from two on, since people say "24h late"."""
    units = (unit for unit, size in UNITS.items() if seconds % size == 0)
    unit = next(each for each in units if each != "d" or seconds > UNITS["d"])
    return f"{seconds // UNITS[unit]}{unit}"


# -- due dates --------------------------------------------------------------------------------


def due_for(
    assignment: Assignment,
    member: Member,
    extensions: Iterable[Extension],
    outages: Iterable[Outage],
) -> float | None:
    """Return the due date of an assignment for one person, at most ``LATEST``.

    None if the assignment has no due date.
    """
    if assignment.due is None:
        return None
    more = sum(each.seconds for each in extensions_of(assignment, member, extensions))
    return min(LATEST, after_outages(assignment.due + more, assignment.course, outages))


def extensions_of(
    assignment: Assignment, member: Member, extensions: Iterable[Extension]
) -> list[Extension]:
    """The extensions of one person for an assignment, by name or by section."""
    return [
        each
        for each in extensions
        if (each.course, each.assignment) == (assignment.course, assignment.name)
        and (each.person == member.person if each.person else each.section == member.section)
    ]


def after_outages(due: float, course: str, outages: Iterable[Outage]) -> float:
    """Return a due date, moved by the length of each outage in it or shortly before it.

    Overlapping outages count as one.
    """
    ours = [(each.starts_at, each.ends_at) for each in outages if each.course in {"", course}]
    for starts_at, ends_at in _merged(ours):
        if starts_at < due <= ends_at + OUTAGE_REACH:
            due += ends_at - starts_at
    return due


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for starts_at, ends_at in sorted(spans):
        if merged and starts_at <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], ends_at)
        else:
            merged.append((starts_at, ends_at))
    return merged


# -- lateness ---------------------------------------------------------------------------------


def lateness(at: float, due: float | None, rule: LateRule) -> Lateness:
    """Return the lateness of a submission; at the due date itself it is on time."""
    if due is None or at <= due:
        return Lateness(standing=LatenessState.ON_TIME)
    late = at - due
    step = next((each for each in rule.steps if late <= each.seconds), None)
    if step is None:
        return Lateness(standing=LatenessState.TOO_LATE, seconds=late, penalty=1.0)
    return Lateness(standing=LatenessState.LATE, seconds=late, penalty=step.penalty)


def now_sentence(now: float, due: float | None, rule: LateRule) -> str:
    """What submitting now would cost, and when that changes."""
    if due is None:
        return "It is never due."
    late = lateness(now, due, rule)
    if not late.counts:
        return "Submitted now, it is too late to count; your teacher may still accept it."
    costs = [(due + step.seconds, step.penalty) for step in rule.steps]
    coming = [(due, late.penalty), *costs] if now <= due else [c for c in costs if c[0] >= now]
    until = coming[0][0]
    after = next((penalty for _, penalty in coming[1:]), None)
    span = messages_units.duration(max(1.0, until - now))
    then = "it does not count any more" if after is None else f"it costs {_percent(after)}"
    if late.standing is LatenessState.ON_TIME:
        return f"Submitted now, it is on time; in {span} {then}."
    behind = f"{messages_units.duration(max(1.0, late.seconds))} late"
    return f"Submitted now, it is {behind} and costs {_percent(late.penalty)}; in {span} {then}."


def _percent(part: float) -> str:
    return f"{part * _WHOLE:g} % of the points"


def counting_submission(
    submissions: Sequence[Submission], due: float | None, rule: LateRule, chosen: int | None = None
) -> Submission | None:
    """The submission of a student that is graded.

    1. The one that a teacher chose (by number).
    2. The last one on time.
    3. The last one that the late rule counts.

    None where no submission counts.
    """
    in_order = sorted(submissions, key=lambda each: each.number)
    if chosen is not None:
        return next((each for each in in_order if each.number == chosen), None)
    stand = {each.number: lateness(each.at, due, rule).standing for each in in_order}
    for wanted in (LatenessState.ON_TIME, LatenessState.LATE):
        found = [each for each in in_order if stand[each.number] is wanted]
        if found:
            return found[-1]
    return None
