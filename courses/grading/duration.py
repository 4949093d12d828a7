"""How long a grading run lasts: said before it begins, and corrected by how it goes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from statistics import mean, median
from typing import Final

from ..model.records import GradingPace

ENOUGH: Final = 10
"""So many verdicts of an earlier run say more than the check before the release."""
_BEFORE: Final = 4.0
"""Seconds until a grader is at its first submission: Python, nbgrader, the key, the gradebook."""
_BELIEF: Final = 5
"""Verdicts that weigh as much as what was expected."""
_LEAST: Final = 0.1
"""Of what is left by the pace, while it lasts longer than expected and nothing else is known."""


def parallel() -> int:
    """How many submissions are graded at one time: the grader runs on the service's machine."""
    return len(os.sched_getaffinity(0))


def pace_of(start: float, verdicts: Sequence[tuple[float, float]], at_once: int) -> GradingPace:
    """Of some submissions, of which so many were graded at once.

    The first ones pay for what is warm later: they count only where there are no others.

    Args:
        verdicts: when each came, in that order, and the seconds that it took.
    """
    later = verdicts[at_once - 1 :]
    if len(later) > 1:
        return GradingPace(start=start, each=_apart([came for came, _ in later]))
    took = [seconds for _, seconds in verdicts]
    return GradingPace(start=start, each=mean(took) / at_once if took else 0.0)


def as_seen(pace: GradingPace, runs: Iterable[Sequence[float]]) -> GradingPace:
    """The pace of earlier runs, of each of which it is known when the verdicts came."""
    seen = [_apart(came) for came in runs if len(came) >= ENOUGH]
    return GradingPace(start=pace.start, each=median(seen)) if seen else pace


def _apart(came: Sequence[float]) -> float:
    """Seconds from one verdict to the next."""
    return (max(came) - min(came)) / (len(came) - 1)


def expected(pace: GradingPace, count: int) -> float:
    """Seconds that a run of so many takes from its start; 0 where nothing is known."""
    return _BEFORE + pace.start + count * pace.each if pace.each > 0 else 0.0


def left(expected: float, total: int, came: Sequence[float], *, began: float, now: float) -> float:
    """Seconds that a run has before it; 0 where nothing is known, and at its end.

    Args:
        expected: seconds of all of it; 0 for unknown.
        came: when its verdicts came.
    """
    done = len(came)
    if done < 2:  # noqa: PLR2004 - from one to the next
        return max(expected * (total - done) / total * _LEAST, expected - (now - began))
    seen, last = _apart(came), max(came)
    belief = _BELIEF if expected else 0
    each = (belief * expected / total + done * seen) / (belief + done)
    return max(0.0, each * (total - done) - min(now - last, each))
