"""Estimate the duration of a grading run, before its start and while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from statistics import mean, median
from typing import Final

from ..model.records import GradingPace

ENOUGH: Final = 10
"""Verdicts of an earlier run from which its pace is preferred to that of the release check."""
_STARTUP: Final = 4.0
"""Seconds until the worker starts its first submission (imports, key, gradebook)."""
_WEIGHT: Final = 5
"""Weight of the expectation, in verdicts."""
_FIRST_ERROR: Final = 1.5
"""The factor by which the first estimate may be wrong."""
_LEAST: Final = 0.1
"""Minimum part of the expected rest, while the first verdicts take longer than expected."""
_STALLED: Final = 10.0
"""Without a verdict for this many times the pace, the rest is unknown: a submission hangs."""


def parallel() -> int:
    """Submissions to grade at the same time: the CPUs of the service's machine."""
    return len(os.sched_getaffinity(0))


def pace_of(start: float, verdicts: Sequence[tuple[float, float]], at_once: int) -> GradingPace:
    """The pace of submissions that were graded ``at_once`` at the same time.

    The first ones are slower (cold caches), and count only if there are no others.

    Args:
        verdicts: the time of each, in order, and its seconds.
    """
    later = verdicts[at_once - 1 :]
    if len(later) > 1:
        return GradingPace(start=start, each=_interval([times for times, _ in later]))
    took = [seconds for _, seconds in verdicts]
    return GradingPace(start=start, each=mean(took) / at_once if took else 0.0)


def as_seen(pace: GradingPace, runs: Iterable[Sequence[float]]) -> GradingPace:
    """The median pace of earlier runs, by the times of their verdicts; else ``pace``."""
    seen = [_interval(times) for times in runs if len(times) >= ENOUGH]
    return GradingPace(start=pace.start, each=median(seen)) if seen else pace


def bounds(left: float, done: int) -> tuple[float, float]:
    """Return the least and the most seconds that probably remain.

    Before ``ENOUGH`` verdicts of the run the machine's load is unknown: the first estimate of a
    class of 20 was seen 46 % off.
    """
    factor = 1.0 if done >= ENOUGH else _FIRST_ERROR
    return left / factor, left * factor


def _interval(times: Sequence[float]) -> float:
    """Mean seconds between verdicts."""
    return (max(times) - min(times)) / (len(times) - 1)


def expected(pace: GradingPace, count: int) -> float:
    """Expected seconds of a run of ``count`` submissions; 0 for unknown."""
    return _STARTUP + pace.start + count * pace.each if pace.each > 0 else 0.0


def left(expected: float, total: int, times: Sequence[float], *, began: float, now: float) -> float:
    """Remaining seconds of a run; 0 for unknown, and at its end.

    Unknown is also the rest of a run that is far behind its estimate: such a submission may take
    until its time limit, or that of the run.

    Args:
        expected: seconds of the whole run; 0 for unknown.
        times: of its verdicts.
    """
    done = len(times)
    if done < 2:  # noqa: PLR2004 - from one to the next
        took = now - began
        if took > _FIRST_ERROR * expected:
            return 0.0
        return max(expected * (total - done) / total * _LEAST, expected - took)
    seen, last = _interval(times), max(times)
    weight = _WEIGHT if expected else 0
    each = (weight * expected / total + done * seen) / (weight + done)
    if now - last > _STALLED * each:
        return 0.0
    return max(0.0, each * (total - done) - min(now - last, each))
