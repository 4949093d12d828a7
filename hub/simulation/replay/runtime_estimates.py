"""Runtime estimates of jobs, with the information that is available at submission."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from math import exp, isfinite
from random import Random
from typing import Protocol

from ...errors import InvalidInput
from ...scheduling.queue.running_set import COUNTED, likely_seconds
from ..workload.jobs import TraceJob

UNKNOWN_SECONDS = 3600.0
"""Expected runtime before any job has ended."""
_ACCEPTED = "Accepted are oracle, lognormal:SIGMA such as lognormal:1.0, and history."
_MOST_SIGMA = 10.0


class Estimator(Protocol):
    """Estimator of one replay; it may learn from jobs that ended in it."""

    def expect(self, job: TraceJob) -> float:
        """Return the expected seconds; called once, at submission."""

    def ended(self, job: TraceJob) -> None:
        """Learn from a job that ended."""


MakeEstimator = Callable[[], Estimator]


class Known:
    """Returns estimates that were fixed before the simulation."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    def expect(self, job: TraceJob) -> float:
        return self._seconds[job.id]

    def ended(self, job: TraceJob) -> None:
        """Ignore it: the estimates are fixed."""


class ObservedRuntimes:
    """Estimates from the last similar jobs that ended (``running_set.likely_seconds``).

    Similar jobs are those of the first kind with any:

    1. same user, tenant and number of devices
    2. same user and tenant
    3. same tenant and number of devices
    4. same tenant
    5. any
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, deque[float]] = {}

    def expect(self, job: TraceJob) -> float:
        for key in _similarity_keys(job):
            if key in self._last:
                return likely_seconds(self._last[key])
        return UNKNOWN_SECONDS

    def ended(self, job: TraceJob) -> None:
        for key in _similarity_keys(job):
            self._last.setdefault(key, deque(maxlen=COUNTED)).append(job.seconds)


def _similarity_keys(job: TraceJob) -> Iterator[Hashable]:
    if job.user:
        yield (job.user, job.tenant, job.size)
        yield (job.user, job.tenant)
    yield ("", job.tenant, job.size)
    yield ("", job.tenant)
    yield ()


def parse_estimates(text: str, jobs: Iterable[TraceJob], seed: int) -> MakeEstimator:
    """Parse ``oracle``, ``lognormal:1.0`` or ``history``.

    An error is drawn once for every job, in the order of the trace, so that all policies get the
    same estimates.
    """
    name, _, rest = text.partition(":")
    if name == "history" and not rest:
        return ObservedRuntimes
    if name == "oracle" and not rest:
        return _once({job.id: job.seconds for job in jobs})
    if name == "lognormal":
        sigma = _sigma(rest)
        generator = Random(seed)  # noqa: S311  # a repeatable experiment, no secret
        return _once({job.id: job.seconds * exp(generator.gauss(0.0, sigma)) for job in jobs})
    raise InvalidInput(f"Estimates cannot be {text!r}.", accepted=_ACCEPTED, field="estimates")


def _once(seconds: dict[str, float]) -> MakeEstimator:
    return lambda: Known(seconds)


def _sigma(text: str) -> float:
    try:
        sigma = float(text)
    except ValueError:
        sigma = float("nan")
    if not (isfinite(sigma) and 0 <= sigma <= _MOST_SIGMA):
        raise InvalidInput(
            f"The spread of the error cannot be {text!r}.", accepted=_ACCEPTED, field="estimates"
        )
    return sigma
