"""Remaining times of jobs that no earlier job is like, by the progress that they report."""

from __future__ import annotations

import math
from typing import Final

from ..interfaces.run_times import RemainingTime
from ..schemas import StepOut

_LEAST_SECONDS: Final = 5.0
_LEAST_SHARE: Final = 0.01
"""Before so much has passed, imports and the first steps say too little."""
_SPREAD: Final = math.log(2.0)


def remaining_of_steps(step: StepOut | None, elapsed: float) -> RemainingTime | None:
    """Return what is left by ``carrel.progress``, as if all steps took as long; None if unknown.

    The interval is narrower the more is done: it is assumed, not learned from other jobs.

    Args:
        elapsed: seconds in which the steps were done.
    """
    # What follows a loop that is done is not known.
    if step is None or not step.of or not 0 < step.done < step.of:
        return None
    share = step.done / step.of
    if share < _LEAST_SHARE or not elapsed >= _LEAST_SECONDS:
        return None
    left = elapsed * (1 - share) / share
    factor = math.exp(_SPREAD * math.sqrt(1 - share))
    return RemainingTime(seconds=left, low=left / factor, high=left * factor, by_steps=True)
