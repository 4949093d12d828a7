"""When the steps of a job were done, from the progress that it reports with a known end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..records.events import EventRecord
from ..records.json_value import Json

_MOST_MARKS = 64
"""Marks of one loop that are kept; then every other one, and later ones as far apart."""
_MOST_STEPS = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """A loop of an attempt whose steps are counted.

    Attributes:
        epoch: the attempt.
        cell: number of the cell; 0 of a command.
        of: the number of steps that the loop has, each time that it runs.
        marks: seconds since the epoch, and the steps that were done by then.
        passed: steps of the times that the loop has run before.
        apart: least seconds between two marks.
        longest: the longest of the loops before it in the attempt.
    """

    epoch: int
    cell: int
    of: float
    marks: tuple[tuple[float, float], ...]
    passed: float = 0.0
    apart: float = 0.0
    longest: StepProgress | None = None

    @property
    def seconds(self) -> float:
        return self.marks[-1][0] - self.marks[0][0]

    @property
    def longest_loop(self) -> StepProgress:
        before = self.longest
        return self if before is None or before.seconds <= self.seconds else before


def steps_after(before: StepProgress | None, event: EventRecord) -> StepProgress | None:
    """Return the steps after one more event; a new attempt starts from the beginning."""
    step = reported_step(event)
    if step is None:
        return before
    cell, done, of = step
    if before is None or before.epoch != event.epoch:
        return StepProgress(epoch=event.epoch, cell=cell, of=of, marks=((event.at, done),))
    last_at, last = before.marks[-1]
    if (before.cell, before.of) != (cell, of) or event.at < last_at:
        new = StepProgress(epoch=event.epoch, cell=cell, of=of, marks=((event.at, done),))
        return replace(new, longest=replace(before.longest_loop, longest=None))
    # A loop that begins again has done all of its steps before, reported or not.
    passed = before.passed + (of if before.passed + done < last else 0.0)
    known = replace(before, passed=passed)
    if passed + done <= last or event.at - last_at < max(before.apart, 1e-3):
        return known
    marks = (*before.marks, (event.at, passed + done))
    if len(marks) <= _MOST_MARKS:
        return replace(known, marks=marks)
    return replace(known, marks=marks[::2], apart=2 * (marks[-1][0] - marks[0][0]) / len(marks))


def reported_step(event: EventRecord) -> tuple[int, float, float] | None:
    """Return cell (0 of a command), steps done and number of steps; None if an event has none."""
    if event.kind != "progress":
        return None
    done, of = finite_number(event.data.get("done")), finite_number(event.data.get("of"))
    if done is None or of is None or not 0 <= done <= of <= _MOST_STEPS:
        return None
    number = event.data.get("number")
    return number if isinstance(number, int) else 0, done, of


def finite_number(value: Json) -> float | None:
    """Return a finite number; None for anything else, because jobs control the value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
