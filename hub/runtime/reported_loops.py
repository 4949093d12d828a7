"""The loops whose progress an attempt reports, and which of them is that of the whole work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..records.events import EventRecord
from .step_progress import reported_step

_MOST_LOOPS: Final = 8
_IN_TURN: Final = 2
"""A loop may follow one other, such as one that prepares data; after more, others may follow."""
_PASSED: Final = 0.5
"""A loop that was left before this part of its steps is expected to go on: it is an outer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLoop:
    """A loop with a known number of steps.

    Attributes:
        of: the number of its steps, in any unit.
        first, newest: seconds since the epoch, and the steps that were done by then.
        gains: how often it was reported with more steps than before.
        restarted_at: when it was first seen to begin again; None if it was not.
    """

    of: float
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
        loops: the newest ones, each with another number of steps, that reported last at the end.
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
    mark = event.at, done
    same = next((each for each in known.loops if each.of == of), None)
    others = tuple(each for each in known.loops if each.of != of)
    if same is not None:
        return replace(known, loops=(*others, same.after(*mark)))
    new = ReportedLoop(of=of, first=mark, newest=mark)
    return replace(known, loops=(*others, new)[-_MOST_LOOPS:], count=known.count + 1)
