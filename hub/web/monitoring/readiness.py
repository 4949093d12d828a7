"""Readiness of the service: checks of all parts that it needs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from ...errors import CarrelError, Unavailable
from ...interfaces.clock import Instant, MonotonicClock, monotonic
from ...runtime.loop_metrics import LoopMetrics

Check = Callable[[], None]
"""A check of one part; raises a CarrelError if the part is not healthy."""
CYCLE_SECONDS = 30.0
"""Maximum age of the last completed scheduling cycle."""
_FRESH_SECONDS = 2.0


class ReadinessCheckOut(BaseModel):
    ok: bool
    message: str


class ReadyOut(BaseModel):
    ready: bool
    checks: dict[str, ReadinessCheckOut]


@dataclass(slots=True)
class Readiness:
    """Checks all parts; the result is cached for two seconds."""

    checks: Mapping[str, Check] = field(default_factory=dict)
    clock: MonotonicClock = monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: tuple[Instant, ReadyOut] | None = None

    def check(self) -> ReadyOut:
        with self._lock:
            now = self.clock()
            if self._known is None or now - self._known[0] >= _FRESH_SECONDS:
                found = {name: _result_of(check) for name, check in self.checks.items()}
                ready = ReadyOut(ready=all(each.ok for each in found.values()), checks=found)
                self._known = (now, ready)
            return self._known[1]


def _result_of(check: Check) -> ReadinessCheckOut:
    try:
        check()
    except CarrelError as error:
        return ReadinessCheckOut(ok=False, message=error.message)
    return ReadinessCheckOut(ok=True, message="It answers.")


def check_loop(loop_metrics: LoopMetrics) -> None:
    """Check that the scheduling loop has recently completed a cycle; raises Unavailable."""
    since = loop_metrics.since_cycle()
    if since is None:
        raise Unavailable("The scheduling loop has not completed a cycle yet.")
    if since > CYCLE_SECONDS:
        raise Unavailable(f"The scheduling loop last completed a cycle {since:.0f} s ago.")
