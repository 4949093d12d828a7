"""Compare the steps of a run with its own earlier ones, and with those of the program elsewhere."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

LEAST_SECONDS: Final = 60.0
"""Shorter loops say too little: progress is read five times a second, …"""
LEAST_INTERVALS: Final = 8
"""… and so do loops with fewer times between two reports."""
LEAST_ELSEWHERE: Final = 2
"""Runs of a program on other devices with which its steps are compared."""
_KEPT_RUNS: Final = 20
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


@dataclass(frozen=True, slots=True)
class StepComparison:
    """Pairs of seconds that steps took, and that they were expected to take.

    Attributes:
        elsewhere: against runs of the same program on other devices; None without enough of them.
        before: in the second half of the run against the first one. Where the program became slower
            on other devices, too, so much is expected here.
    """

    elsewhere: tuple[float, float] | None
    before: tuple[float, float]


def step_times(marks: Sequence[tuple[float, float]]) -> StepTimes | None:
    """Return how long the steps of a loop took; None if they say too little.

    Medians leave out what happens now and then, such as checkpoints or a job that was paused.

    Args:
        marks: times in seconds, and the steps that were done by then; both grow.
    """
    pairs = list(pairwise(marks))
    if len(pairs) < LEAST_INTERVALS or marks[-1][0] - marks[0][0] < LEAST_SECONDS:
        return None
    middle = (marks[0][1] + marks[-1][1]) / 2
    paces = [((then - at) / (after - done), done) for (at, done), (then, after) in pairs]
    first = [pace for pace, done in paces if done < middle]
    second = [pace for pace, done in paces if done >= middle]
    if min(len(first), len(second)) < LEAST_INTERVALS // 2:
        return None
    return StepTimes(median(first), median(second), median(pace for pace, _ in paces))


@dataclass(slots=True)
class StepHistory:
    """The steps of the last runs of each program on one device each, in memory."""

    _programs: OrderedDict[str, deque[tuple[str, StepTimes]]] = field(default_factory=OrderedDict)

    def compare(self, program: str, device: str, found: StepTimes) -> StepComparison:
        """Compare the steps of a run on a device; ``program`` identifies a loop and its work."""
        others = [each for name, each in self._programs.get(program, ()) if name != device]
        known = len(others) >= LEAST_ELSEWHERE
        usual = median(each.typical for each in others) if known else 0.0
        growth = median(each.later / each.earlier for each in others) if known else 1.0
        return StepComparison(
            elsewhere=(found.typical, usual) if known else None,
            before=(found.later, found.earlier * max(1.0, growth)),
        )

    def add(self, program: str, device: str, found: StepTimes) -> None:
        runs = self._programs.setdefault(program, deque(maxlen=_KEPT_RUNS))
        runs.append((device, found))
        self._programs.move_to_end(program)
        while len(self._programs) > _KEPT_PROGRAMS:
            self._programs.popitem(last=False)

    def forget(self, device: str) -> None:
        """Forget the runs on a device."""
        for name, runs in self._programs.items():
            kept = [each for each in runs if each[0] != device]
            self._programs[name] = deque(kept, maxlen=_KEPT_RUNS)
