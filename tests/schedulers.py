"""A scheduler of the simulator that a test or a benchmark observes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from carrel.hub.simulation.policies.policy import Scheduler
from carrel.hub.simulation.workload.job_run import Run

S = TypeVar("S", bound=Scheduler)


@dataclass
class ForwardingScheduler(Generic[S]):
    """Forwards everything to another scheduler; subclasses record what they are for."""

    inner: S

    def submit(self, run: Run, now: float) -> None:
        self.inner.submit(run, now)

    def end(self, run: Run, now: float) -> None:
        self.inner.end(run, now)

    def decide(self, now: float) -> Sequence[Run]:
        return self.inner.decide(now)

    def next_change(self) -> float:
        return self.inner.next_change()

    @property
    def waiting(self) -> int:
        return self.inner.waiting

    @property
    def free(self) -> float:
        return self.inner.free
