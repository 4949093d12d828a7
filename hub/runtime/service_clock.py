"""The clock of the service: epoch time that advances with the monotonic clock.

The system clock can be set while work runs, and it advances while the machine is suspended. This
clock does neither. The scheduling loop reads the step between the two clocks, moves the times of
all running work by it (``Store.move_times``) and then adopts the time of the system. Intervals that
began before the step keep their true length.
"""

from __future__ import annotations

import time
from pathlib import Path

from ..interfaces.clock import Clock, MonotonicClock, monotonic
from ..records.clock import ClockOffset

STEP_SECONDS = 1.0
"""Smaller differences are drift, which is adopted without moving times."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the boot id of the machine; empty if unknown."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


class ServiceClock:
    """A ``Clock`` that follows the system clock only on request.

    Args:
        kept: the stored offset of the previous service process. It is used only within the same
            boot of the machine; after a reboot, no work of that process is left.
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
        """The offset to store for the next service process."""
        return ClockOffset(boot=self._boot, seconds=self._seconds)

    def step(self) -> float:
        """Return the seconds by which the system clock is ahead; adopt drift and return 0."""
        ahead = self._difference() - self._seconds
        if abs(ahead) < STEP_SECONDS:
            self._seconds += ahead
            return 0.0
        return ahead

    def adopt(self, step: float) -> None:
        """Advance the clock by a step, in seconds."""
        self._seconds += step

    def _difference(self) -> float:
        return self._system() - self._elapsed().seconds
