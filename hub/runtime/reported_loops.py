"""The loops whose progress an attempt reports, and which of them is that of the whole work.

A report names no loop: two are told apart by their numbers of steps and by their descriptions,
without the numbers in these, such as a loss. Loops that are alike in both are taken for one that
begins again, whose end tells nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ..records.events import EventRecord
from .step_progress import reported_step

_MOST_LOOPS: Final = 8
_IN_TURN: Final = 2
"""A loop may follow one other, such as one that prepares data; after more, others may follow."""
_PASSED: Final = 0.5
"""A loop that was left before this part of its steps is expected to go on: it is an outer one."""
_VARIED: Final = 3
"""So many descriptions, each of a single step that follows the last one, are of one loop."""
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,_]*(?:e[-+]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLoop:
    """A loop with a known number of steps.

    Attributes:
        of: the number of its steps, in any unit.
        description: without numbers; None if it has another one with each step.
        first, newest: seconds since the epoch, and the steps that were done by then.
        gains: how often it was reported with more steps than before.
        restarted_at: when it was first seen to begin again; None if it was not.
    """

    of: float
    description: str | None = ""
    first: tuple[float, float]
    newest: tuple[float, float]
    gains: int = 0
    restarted_at: float | None = None

    def after(self, at: float, done: float) -> ReportedLoop:
        if done < self.newest[1]:
            again = at if self.restarted_at is None else self.restarted_at
            return replace(self, first=(at, done), newest=(at, done), gains=0, restarted_at=again)
        if done == self.newest[1]:
            return self
        return replace(self, newest=(at, done), gains=self.gains + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLoops:
    """The loops of the newest cell, or command, that has reported progress.

    Attributes:
        epoch: the attempt.
        cell: number of the cell; 0 of a command.
        loops: the newest ones, that reported last at the end; two of them differ in their number of
            steps or in their description.
        count: how many there were.
    """

    epoch: int
    cell: int
    loops: tuple[ReportedLoop, ...] = ()
    count: int = 0

    @property
    def whole(self) -> ReportedLoop | None:
        """The loop whose end is that of the work, as far as the reports tell; None if unknown.

        1. Beside a loop that begins again: the earliest one that goes on meanwhile.
        2. The earliest one that was left in its first half: it is expected to go on.
        3. The newest one, if it follows one other at most.
        """
        restarts = [each.restarted_at for each in self.loops if each.restarted_at is not None]
        lasting = [each for each in self.loops if each.restarted_at is None]
        if restarts:
            again = min(restarts)
            found = [each for each in lasting if each.first[0] < again <= each.newest[0]]
            return min(found, key=lambda each: each.first, default=None)
        left = [each for each in lasting[:-1] if each.newest[1] < _PASSED * each.of]
        if left:
            return min(left, key=lambda each: each.first)
        return lasting[-1] if lasting and self.count <= _IN_TURN else None


def loops_after(before: ReportedLoops | None, event: EventRecord) -> ReportedLoops | None:
    """Return the loops after one more event; a new attempt or cell starts from the beginning."""
    step = reported_step(event)
    if step is None:
        return before
    cell, done, of = step
    known = before
    if known is None or (known.epoch, known.cell) != (event.epoch, cell):
        known = ReportedLoops(epoch=event.epoch, cell=cell)
    mark, description = (event.at, done), _description(event)
    same = next(
        (e for e in known.loops if e.of == of and e.description in (None, description)), None
    )
    if same is not None:
        others = tuple(each for each in known.loops if each is not same)
        return replace(known, loops=(*others, same.after(*mark)))
    new = ReportedLoop(of=of, description=description, first=mark, newest=mark)
    loops = (*known.loops, new)
    return _as_one(replace(known, loops=loops[-_MOST_LOOPS:], count=known.count + 1), of)


def _as_one(known: ReportedLoops, of: float) -> ReportedLoops:
    """Join the loops with a number of steps if it is one, whose description is that of its step."""
    alike = [each for each in known.loops if each.of == of]
    done = [each.newest[1] for each in alike]
    follow = all(before < after for before, after in pairwise(done))
    single = not any(each.gains or each.restarted_at is not None for each in alike)
    if len(alike) < _VARIED or not follow or not single:
        return known
    one = replace(alike[0], description=None, newest=alike[-1].newest, gains=len(alike) - 1)
    others = tuple(each for each in known.loops if each.of != of)
    return replace(known, loops=(*others, one), count=known.count - len(alike) + 1)


def _description(event: EventRecord) -> str:
    text = event.data.get("text")
    return " ".join(_NUMBER.sub("#", text).split()) if isinstance(text, str) else ""
