"""Compare the steps of a run with its own earlier ones, and with those of the program elsewhere.

Jobs report their steps themselves. What is usual for a program therefore rests on runs of two users
on other devices, of each user on the median, or on those of its only user on two other devices.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median, median_high
from typing import Final

LEAST_SECONDS: Final = 60.0
"""Shorter loops say too little: progress is read five times a second, …"""
LEAST_INTERVALS: Final = 8
"""… and so do loops with fewer times between two reports."""
LEAST_ELSEWHERE: Final = 2
"""Users, or devices of one user, whose runs on other devices tell what is usual."""
PACES: Final = (1e-9, 86_400.0)
"""Seconds of a step between which it is plausible."""
MOST_GROWTH: Final = 100.0
"""Halves of a run that differ by a larger factor did different work."""
_KEPT_RUNS: Final = 40
_KEPT_PROGRAMS: Final = 500


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds that a step took, at the median.

    Attributes:
        earlier, later: in the first and in the second half of the steps.
        typical: in all of them.
    """

    earlier: float
    later: float
    typical: float

    @property
    def growth(self) -> float:
        """How many times as long steps took in the second half."""
        return self.later / self.earlier


@dataclass(frozen=True, slots=True)
class StepComparison:
    """Pairs of seconds that steps took, and that they were expected to take.

    Attributes:
        elsewhere: against runs of the same program on other devices; None without enough of them.
        before: in the second half of the run against the first one, which became as much slower as
            it is usual on other devices; None if that is not known.
    """

    elsewhere: tuple[float, float] | None
    before: tuple[float, float] | None


def step_times(marks: Sequence[tuple[float, float]]) -> StepTimes | None:
    """Return how long the steps of a loop took; None if they say too little.

    Medians leave out what happens now and then, such as checkpoints or a job that was paused.

    Args:
        marks: times in seconds, and the steps that were done by then; both grow, or the marks are
            of no use.
    """
    pairs = list(pairwise(marks))
    grow = all(then > at and after > done for (at, done), (then, after) in pairs)
    if not grow or not all(math.isfinite(value) for mark in marks for value in mark):
        return None
    if len(pairs) < LEAST_INTERVALS or marks[-1][0] - marks[0][0] < LEAST_SECONDS:
        return None
    middle = (marks[0][1] + marks[-1][1]) / 2
    paces = [((then - at) / (after - done), done) for (at, done), (then, after) in pairs]
    first = [pace for pace, done in paces if done < middle]
    second = [pace for pace, done in paces if done >= middle]
    if min(len(first), len(second)) < LEAST_INTERVALS // 2:
        return None
    found = StepTimes(median(first), median(second), median(pace for pace, _ in paces))
    least, most = PACES
    plausible = all(least <= each <= most for each in (found.earlier, found.later, found.typical))
    return found if plausible and 1 / MOST_GROWTH <= found.growth <= MOST_GROWTH else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedRun:
    """A run of a program on one device.

    Attributes:
        program: what identifies the code of the loop and its number of steps.
        conditions: what else its pace depends on, such as its parameters and the device model.
    """

    program: str
    conditions: str
    device: str
    owner: str
    times: StepTimes


@dataclass(slots=True)
class StepHistory:
    """The steps of the last runs of each program, in memory."""

    _programs: OrderedDict[str, deque[SteppedRun]] = field(default_factory=OrderedDict)

    def compare(self, run: SteppedRun) -> StepComparison:
        """Compare the steps of a run with those of the program on other devices.

        The pace is that of runs in the same conditions. A program that becomes slower does so in
        other conditions, too: without runs in the same ones, those of the user whose runs became
        slower most are usual.
        """
        elsewhere = [
            each for each in self._programs.get(run.program, ()) if each.device != run.device
        ]
        same = [each for each in elsewhere if each.conditions == run.conditions]
        usual = _usual(same, run.owner, lambda times: times.typical, median_high)
        growth = _usual(same, run.owner, lambda times: times.growth, median_high)
        if growth is None:
            growth = _usual(elsewhere, run.owner, lambda times: times.growth, max)
        found = run.times
        return StepComparison(
            elsewhere=None if usual is None else (found.typical, usual),
            before=None if growth is None else (found.later, found.earlier * max(1.0, growth)),
        )

    def add(self, run: SteppedRun) -> None:
        runs = self._programs.setdefault(run.program, deque(maxlen=_KEPT_RUNS))
        runs.append(run)
        self._programs.move_to_end(run.program)
        while len(self._programs) > _KEPT_PROGRAMS:
            self._programs.popitem(last=False)

    def forget(self, device: str) -> None:
        """Forget the runs on a device."""
        for name, runs in self._programs.items():
            kept = [each for each in runs if each.device != device]
            self._programs[name] = deque(kept, maxlen=_KEPT_RUNS)


def _usual(
    runs: Sequence[SteppedRun],
    owner: str,
    value: Callable[[StepTimes], float],
    middle: Callable[[Iterable[float]], float],
) -> float | None:
    """Return what is usual by the medians of each user, or of each device of the only user.

    None: they are too few. The runs of one other user alone say nothing.

    Args:
        owner: of the run that is compared.
        middle: of two medians the larger one, at least: one user can hide that a device is slow,
            but cannot make it look so.
    """
    by_owner: dict[str, list[float]] = {}
    by_device: dict[str, list[float]] = {}
    for each in runs:
        by_owner.setdefault(each.owner, []).append(value(each.times))
        by_device.setdefault(each.device, []).append(value(each.times))
    groups = by_device if by_owner.keys() == {owner} else by_owner
    if len(groups) < LEAST_ELSEWHERE:
        return None
    return middle(median(values) for values in groups.values())
