"""How much of its guarantee a group lacked while it had work that would have fitted into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ..workload.job_run import Run, group_of


@dataclass(frozen=True, slots=True, order=True)
class _Change:
    """At one moment: devices that are held more, and runs of a size that wait more.

    A gang that may start with fewer members waits for all that it would like.
    """

    at: float
    held: float
    size: float
    waiting: int


def below_guarantee(runs: Iterable[Run], guaranteed: Mapping[str, int]) -> float:
    """Device-seconds, over all groups that are guaranteed something."""
    by_group: dict[str, list[Run]] = {}
    for run in runs:
        by_group.setdefault(group_of(run.job), []).append(run)
    return sum(
        _lacked(by_group[group], most)
        for group, most in guaranteed.items()
        if most and group in by_group
    )


def _lacked(runs: list[Run], guaranteed: int) -> float:
    held = lacked = 0.0
    waiting = Counter[float]()
    changes = sorted(change for run in runs for change in _changes(run))
    for change, after in pairwise(changes):
        held += change.held
        waiting[change.size] += change.waiting
        if after.at > change.at:
            lacked += _owed(guaranteed - held, waiting) * (after.at - change.at)
    return lacked


def _owed(room: float, waiting: Mapping[float, int]) -> float:
    """What those that wait could hold within the guarantee, the smallest first.

    One that is larger than what is left of the guarantee is not owed its devices by it.
    """
    owed = 0.0
    for size in sorted(size for size, count in waiting.items() if count):
        if size > room:
            break
        taken = size * min(waiting[size], room // size)
        owed += taken
        room -= taken
    return owed


def _changes(run: Run) -> Iterator[_Change]:
    size = run.job.size
    yield _Change(run.job.submitted_at, 0.0, size, 1)
    last = len(run.spans) - 1
    for number, ((began, ended), held) in enumerate(zip(run.spans, run.sizes, strict=True)):
        yield _Change(began, held, size, -1)
        yield _Change(ended, -held, size, 0 if number == last else 1)
