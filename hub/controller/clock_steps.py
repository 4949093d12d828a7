"""Shift the times of running work when the system clock was set or the machine was suspended."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..records.clock import ClockOffset
from ..runtime.context import Context
from ..runtime.service_clock import ServiceClock

DRIFT_SECONDS = 0.25
"""The stored offset is rewritten when the clock has drifted by more than this."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ClockSteps:
    """Detects clock steps; called by the loop at the start of every cycle.

    A crash at any point applies no step twice: times and offset are stored together.
    """

    context: Context
    clock: ServiceClock | None
    """None where the time of ``context`` never steps, as in tests."""
    _kept: ClockOffset | None = None

    def follow(self) -> bool:
        """Shift the times of running work with the clock; return whether the clock was set."""
        if self.clock is None:
            return False
        step = self.clock.step()
        if step:
            self._shift(self.clock, step)
        elif self._kept is None or self._drifted(self._kept, self.clock.offset):
            self._kept = self.clock.offset
            self.context.store.keep_clock_offset(self._kept)
        return step != 0

    def _shift(self, clock: ServiceClock, step: float) -> None:
        log.warning(
            "the clock was set by %+.0f s, or the machine was suspended: the times of running "
            "work are shifted by the same amount",
            step,
        )
        before = clock.offset
        self._kept = ClockOffset(boot=before.boot, seconds=before.seconds + step)
        # In this order, a charge between the two steps ends before the time that is charged
        # already, and adds nothing.
        if step < 0:
            clock.adopt(step)
        self.context.store.move_times(step, self._kept)
        if step > 0:
            clock.adopt(step)

    @staticmethod
    def _drifted(kept: ClockOffset, now: ClockOffset) -> bool:
        return kept.boot != now.boot or abs(kept.seconds - now.seconds) > DRIFT_SECONDS
