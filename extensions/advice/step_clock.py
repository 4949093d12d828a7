"""Time a training step: warm-up, then repetitions until the median is known, within a limit.

A median is known once the steps before it agree, or once they are clearly slower than the fastest
setting, whose exact rate tells nothing more; steps that do not agree are repeated for longer.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from types import FrameType
from typing import Final

from .memory_meter import cuda

_LEAST_STEPS: Final = 3
_MOST_STEPS: Final = 200
_SECONDS: Final = 0.2
"""Steps that do not agree are repeated for about this long."""
_STEADY_STEPS: Final = 5
_STEADY_SECONDS: Final = 0.02
_SPREAD: Final = 0.03
"""Steps agree if the middle half of them differs by at most this part of the median."""
_CLEARLY_SLOWER: Final = 1.3
"""Also the shortest step: a neighbour on the machine slows some of them."""


class StepTimeout(BaseException):
    """A step took longer than the probe may; not an ``Exception``, which the step may catch."""


def seconds_of_step(
    step: Callable[[], object],
    *,
    warm_up: bool = True,
    most_steps: float = _MOST_STEPS,
    best_seconds: float = math.inf,
) -> float:
    """Return the median seconds of a step, or of a single one without ``warm_up``.

    Args:
        most_steps: after so many no more are repeated, but for the least that a median needs.
        best_seconds: what a step would take at the rate of the fastest setting so far.
    """
    if not warm_up:
        return _once(step)
    _once(step)
    most = min(most_steps, _MOST_STEPS)
    taken: list[float] = []
    while len(taken) < _LEAST_STEPS or not (
        sum(taken) >= _SECONDS
        or len(taken) >= most
        or _steady(taken)
        or min(taken) > _CLEARLY_SLOWER * best_seconds
    ):
        taken.append(_once(step))
    return median(taken)


def _steady(taken: Sequence[float]) -> bool:
    if len(taken) < _STEADY_STEPS or sum(taken) < _STEADY_SECONDS:
        return False
    lower, middle, upper = quantiles(taken, n=4)
    return upper - lower <= _SPREAD * middle


def _once(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    device = cuda()
    if device is not None:
        device.synchronize()
    return time.perf_counter() - start


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``StepTimeout`` in the block after some seconds.

    Only in the main thread of a program on Unix, and not before a running call of compiled code
    returns; elsewhere the time limit of the job is the only one.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return

    def expire(signal_number: int, frame: FrameType | None) -> None:
        del signal_number, frame
        raise StepTimeout

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
