"""Find jobs that wait for cores: other work on the node has them, or a CPU limit holds them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ...records.leases import SignKind
from .findings import JobHistory, SignFinding

_SECONDS: Final = 600.0
_WAITING_PART: Final = 0.3
"""Least part of the time of runnable threads that they wait."""
_LEAST_WAITING: Final = 0.25
"""Least number of threads that wait on average."""
_OWN_PART: Final = 0.7
"""A job that itself uses more of its node's cores waits for itself."""
_THROTTLED: Final = 0.2
_PARTS: Final = 4


def processor_signs(history: JobHistory) -> Iterator[SignFinding]:
    """Yield at most one sign: a CPU limit explains waiting better than other work does."""
    seconds = max(_SECONDS, 6 * history.use.seconds)
    since = max(0.0, history.age - seconds)
    cores = history.window(seconds, lambda point: point.cores)
    if cores is None:
        return
    throttled = history.window(seconds, lambda point: point.throttled)
    if throttled is not None and throttled.mean >= _THROTTLED:
        figures = {"part": min(1.0, throttled.mean), "cores": cores.mean, "seconds": seconds}
        yield SignFinding(kind=SignKind.CPU_LIMITED, since=since, figures=figures)
        return
    waiting = history.window(seconds, lambda point: point.waiting)
    if waiting is None or waiting.mean < _LEAST_WAITING:
        return
    pairs = list(zip(waiting.parts(_PARTS), cores.parts(_PARTS), strict=True))
    own = _OWN_PART * (history.node_cores or math.inf)
    if all(wait >= _WAITING_PART * (wait + used) and used < own for wait, used in pairs):
        part = waiting.mean / (waiting.mean + cores.mean)
        figures = {"part": part, "cores": cores.mean, "seconds": seconds}
        yield SignFinding(kind=SignKind.CPU_CONTENTION, since=since, figures=figures)
