"""The time of the service: epoch time that advances with the monotonic clock.

The system's clock can be set while work runs, and it advances while the machine is suspended. This
clock does neither. The scheduling loop asks for the step between the two, moves the times of all
running work by it (``Store.move_times``) and then adopts the system's time: an interval that
began before the step is as long after it as it really was.
"""

from __future__ import annotations

import time
from pathlib import Path

from ..interfaces.clock import Clock, MonotonicClock, monotonic
from ..records.clock import ClockOffset

STEP_SECONDS = 1.0
"""A smaller difference is drift, which is adopted as it is."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the identity of this boot of the machine; empty if it is unknown."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


class ServiceClock:
    """A ``Clock`` that follows the system's clock only when it is told to.

    Args:
        kept: the offset that the last life of the service used. It counts in the same boot of
            the machine; after another boot no process of that life is left.
    """

    def __init__(
        self,
        kept: ClockOffset | None = None,
        *,
        system: Clock = time.time,
        elapsed: MonotonicClock = monotonic,
        boot: str | None = None,
    ) -> None:
        self._system, self._elapsed = system, elapsed
        self._boot = boot_id() if boot is None else boot
        same_boot = kept is not None and self._boot != "" and kept.boot == self._boot
        self._seconds = kept.seconds if kept and same_boot else self._difference()

    def __call__(self) -> float:
        return self._seconds + self._elapsed().seconds

    @property
    def offset(self) -> ClockOffset:
        """What the next life of the service needs to know."""
        return ClockOffset(boot=self._boot, seconds=self._seconds)

    def step(self) -> float:
        """Return by how many seconds the system's clock is ahead; 0 if it only drifted."""
        ahead = self._difference() - self._seconds
        if abs(ahead) < STEP_SECONDS:
            self._seconds += ahead
            return 0.0
        return ahead

    def adopt(self, step: float) -> None:
        """Advance by a step."""
        self._seconds += step

    def _difference(self) -> float:
        return self._system() - self._elapsed().seconds
