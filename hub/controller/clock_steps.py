"""Follow the system's clock when it was set, or when the machine was suspended."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..records.clock import ClockOffset
from ..runtime.context import Context
from ..runtime.service_clock import ServiceClock

DRIFT_SECONDS = 0.25
"""The kept offset is written again when the clock has drifted by more."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ClockSteps:
    """Called by the loop at the begin of every cycle.

    A crash at any point repeats nothing: times and offset are stored together.
    """

    context: Context
    clock: ServiceClock | None
    """None where the time of ``context`` never steps, as in tests."""
    _kept: ClockOffset | None = None

    def follow(self) -> bool:
        """Move the times of running work with the clock; return whether it was set."""
        if self.clock is None:
            return False
        step = self.clock.step()
        if step:
            self._move(self.clock, step)
        elif self._kept is None or self._drifted(self._kept, self.clock.offset):
            self._kept = self.clock.offset
            self.context.store.keep_clock_offset(self._kept)
        return step != 0

    def _move(self, clock: ServiceClock, step: float) -> None:
        log.warning(
            "the clock was set by %+.0f s, or the machine was suspended: the times of running "
            "work move with it",
            step,
        )
        before = clock.offset
        self._kept = ClockOffset(boot=before.boot, seconds=before.seconds + step)
        # Whichever time is charged meanwhile is before what is charged already.
        if step < 0:
            clock.adopt(step)
        self.context.store.move_times(step, self._kept)
        if step > 0:
            clock.adopt(step)

    @staticmethod
    def _drifted(kept: ClockOffset, now: ClockOffset) -> bool:
        return kept.boot != now.boot or abs(kept.seconds - now.seconds) > DRIFT_SECONDS
