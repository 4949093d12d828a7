"""Estimates of the runtime of a job, as far as it can be known at submission."""

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
    """Made for each run of a simulation; it may learn from jobs that ended in it."""

    def expect(self, job: TraceJob) -> float:
        """Expected seconds; called once, at submission."""

    def ended(self, job: TraceJob) -> None: ...


MakeEstimator = Callable[[], Estimator]


class Known:
    """Returns estimates that were fixed before the simulation."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    def expect(self, job: TraceJob) -> float:
        return self._seconds[job.id]

    def ended(self, job: TraceJob) -> None:
        """Nothing to learn."""


class ObservedRuntimes:
    """Estimates from the last jobs that ended (``running_set.likely_seconds``), of the first kind
    with any:

    1. same user, tenant and number of devices
    2. same user and tenant
    3. same tenant and number of devices
    4. same tenant
    5. any
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, deque[float]] = {}

    def expect(self, job: TraceJob) -> float:
        for likeness in _likenesses(job):
            if likeness in self._last:
                return likely_seconds(self._last[likeness])
        return UNKNOWN_SECONDS

    def ended(self, job: TraceJob) -> None:
        for likeness in _likenesses(job):
            self._last.setdefault(likeness, deque(maxlen=COUNTED)).append(job.seconds)


def _likenesses(job: TraceJob) -> Iterator[Hashable]:
    if job.user:
        yield (job.user, job.tenant, job.size)
        yield (job.user, job.tenant)
    yield ("", job.tenant, job.size)
    yield ("", job.tenant)
    yield ()


def parse_estimates(text: str, jobs: Iterable[TraceJob], seed: int) -> MakeEstimator:
    """Parse ``oracle``, ``lognormal:1.0`` or ``history``.

    An error is drawn once for each job, in the order of the trace, so that all policies get the
    same
    estimates.
    """
    name, _, rest = text.partition(":")
    if name == "history" and not rest:
        return ObservedRuntimes
    if name == "oracle" and not rest:
        return _once({job.id: job.seconds for job in jobs})
    if name == "lognormal":
        sigma = _sigma(rest)
        chance = Random(seed)  # noqa: S311  # a repeatable experiment, no secret
        return _once({job.id: job.seconds * exp(chance.gauss(0.0, sigma)) for job in jobs})
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
