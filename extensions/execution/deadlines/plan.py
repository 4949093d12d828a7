"""Plan which worker executes which request when: by earliest deadline, where it ends soonest.

Work that has begun is not interrupted. The same plan decides what is admitted and what a free
worker does next, so that what was admitted by a plan is what happens. Rule: earliest deadline first
(Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment",
Journal of the ACM 20, 1973), as list scheduling on workers of different speeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_OVERRUN: Final = 0.5
"""Of its time: what a run that takes longer than that is expected to need still."""
Cost = Callable[[str, int], float]
"""Seconds of a model on a worker; infinite where it cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TimedRequest:
    """A request to execute a model.

    Attributes:
        deadline: time by which it must have ended, in seconds of a clock.
        number: in the order of submission.
        runs: how many times the cost of the model it needs, such as its rows.
    """

    deadline: float
    number: int
    model: str
    runs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRun:
    """Where and when a request is executed, as far as the costs are right."""

    request: TimedRequest
    worker: int
    begins: float
    ends: float

    @property
    def in_time(self) -> bool:
        return self.ends <= self.request.deadline


def plan(
    requests: Iterable[TimedRequest], free_at: Sequence[float], cost: Cost
) -> tuple[PlacedRun, ...]:
    """Return a run for each request, by deadline.

    Args:
        requests: that wait.
        free_at: for each worker, when it ends what it executes now; the present time if idle.
    """
    free = list(free_at)
    runs = []
    for request in sorted(requests):
        ends = [
            begins + request.runs * cost(request.model, each) for each, begins in enumerate(free)
        ]
        worker = min(range(len(free)), key=ends.__getitem__)
        run = PlacedRun(request=request, worker=worker, begins=free[worker], ends=ends[worker])
        runs.append(run)
        if math.isfinite(run.ends):
            free[worker] = run.ends
    return tuple(runs)


def free_at(now: float, begun: float, expected: float) -> float:
    """Return when a worker will have ended what it executes.

    Args:
        begun: when its run began.
        expected: seconds of its run; 0 while it has none.
    """
    if not expected:
        return now
    ends = begun + expected
    return ends if now <= ends else now + _OVERRUN * expected


def all_in_time(runs: Iterable[PlacedRun]) -> bool:
    return all(run.in_time for run in runs)
