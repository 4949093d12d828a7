"""Notice that a running component hangs, without blocking the supervisor."""

from __future__ import annotations

import threading
from collections.abc import Callable


class LivenessCheck:
    """Probes one process from time to time, each time in a thread of its own.

    It counts failed probes instead of seconds: a machine or a supervisor that was suspended finds
    a component that responds again.
    """

    def __init__(self, probe: Callable[[], bool], *, every: float, now: float) -> None:
        self.missed = 0
        """Failed probes since the last success."""
        self._probe = probe
        self._every = every
        self._due = now + every
        self._thread: threading.Thread | None = None
        self._responded = False

    def poll(self, now: float) -> int:
        """Collect the result of a probe, start one that is due, and return ``missed``."""
        if self._thread is not None and not self._thread.is_alive():
            self.missed = 0 if self._responded else self.missed + 1
            self._thread, self._due = None, now + self._every
        if self._thread is None and now >= self._due:
            self._thread = threading.Thread(target=self._run, name="liveness", daemon=True)
            self._thread.start()
        return self.missed

    def _run(self) -> None:
        self._responded = self._probe()
