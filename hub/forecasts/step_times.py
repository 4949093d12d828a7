"""Remaining times of jobs that no earlier job is like, by the progress that they report."""

from __future__ import annotations

import math
from typing import Final

from ..interfaces.run_times import RemainingTime
from ..runtime.reported_loops import ReportedLoop

_LEAST_SECONDS: Final = 5.0
_LEAST_SHARE: Final = 0.01
"""Before so much was timed, the first steps say too little."""
_SPREAD: Final = math.log(2.0)


def remaining_of_steps(loop: ReportedLoop | None, now: float) -> RemainingTime | None:
    """Return what is left by ``carrel.progress``, as if all steps took as long; None if unknown.

    Steps are timed between the first and the newest report, without what was before the loop. The
    interval is narrower the more was timed: it is assumed, not learned from other jobs.

    Args:
        loop: the one whose end is that of the work; None if that is unknown.
        now: seconds since the epoch.
    """
    # What follows a loop that is done is not known.
    if loop is None or not loop.gains or not loop.newest[1] < loop.of:
        return None
    (began, before), (ended, done) = loop.first, loop.newest
    seconds, share = ended - began, (done - before) / (loop.of - before)
    if share < _LEAST_SHARE or not seconds >= _LEAST_SECONDS:
        return None
    # Between two reports the time passes, but a loop that hangs does not come nearer to its end.
    passed = min(max(0.0, now - ended), seconds / loop.gains)
    left = max(0.0, (loop.of - done) * seconds / (done - before) - passed)
    factor = math.exp(_SPREAD * math.sqrt(1 - share))
    return RemainingTime(seconds=left, low=left / factor, high=left * factor, by_steps=True)
