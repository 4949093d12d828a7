"""The CPU time that leases used in their containers, without what serves a session itself."""

from __future__ import annotations

import threading
from collections.abc import Collection

from ..engine.client import DockerClient
from .node import Seen


class ContainerCpuMeter:
    """Counts on from one look to the next; usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def read(self, lease_id: str, engine: DockerClient, seen: Seen) -> float | None:
        """CPU seconds since the first look at this lease; None where nothing is known.

        The engine counts for the whole container. Its first process but the init is the server
        or the runner, which open tabs keep busy: its own time is taken off.
        """
        total = engine.cpu_seconds(seen.id)
        if total is None or seen.handle is None:
            return None
        served = sum(
            used for _, parent, used in engine.processes(seen.id) if parent == seen.handle.pid
        )
        with self._lock:
            now = max(0.0, total - served)
            since = now - self._first.setdefault(lease_id, now)
            # The two numbers are of two moments, and one of them is of whole seconds.
            self._last[lease_id] = max(since, self._last.get(lease_id, 0.0))
            return self._last[lease_id]

    def forget_others(self, leases: Collection[str]) -> None:
        with self._lock:
            for known in (self._first, self._last):
                for gone in known.keys() - set(leases):
                    del known[gone]
