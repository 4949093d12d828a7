"""What the event loop asks of whoever decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..workload.job_run import Run


class Scheduler(Protocol):
    """Told of what happens, then asked to decide, once for each moment."""

    def submit(self, run: Run, now: float) -> None: ...

    def end(self, run: Run, now: float) -> None:
        """It ran to its end; called while it still has its placement."""

    def decide(self, now: float) -> Sequence[Run]:
        """Start and stop what is to be started and stopped; those that started."""

    def next_change(self) -> float:
        """When it wants to decide although nothing may have happened; infinity for never."""

    @property
    def waiting(self) -> int:
        """How many runs wait."""

    @property
    def free(self) -> float:
        """Devices that nobody holds."""
