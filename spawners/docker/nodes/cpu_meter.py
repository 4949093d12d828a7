"""Measure the CPU time of leases in containers, without that of a session's own server."""

from __future__ import annotations

import threading
from collections.abc import Collection

from ..engine.client import DockerClient
from .node import SurveyedContainer


class ContainerCpuMeter:
    """Measures the CPU seconds of leases over successive readings; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def read(self, lease_id: str, engine: DockerClient, seen: SurveyedContainer) -> float | None:
        """Return the CPU seconds since the first reading of this lease; None if unknown.

        The engine measures the whole container. The time of the init's children is subtracted: they
        are the server or the runner, which open browser tabs keep busy.
        """
        total = engine.cpu_seconds(seen.id)
        if total is None or seen.handle is None:
            return None
        server_seconds = sum(
            used for _, parent, used in engine.processes(seen.id) if parent == seen.handle.pid
        )
        with self._lock:
            now = max(0.0, total - server_seconds)
            since = now - self._first.setdefault(lease_id, now)
            # The two readings are not simultaneous, and one is in whole seconds.
            self._last[lease_id] = max(since, self._last.get(lease_id, 0.0))
            return self._last[lease_id]

    def forget_others(self, leases: Collection[str]) -> None:
        """Forget all leases but these."""
        with self._lock:
            for by_lease in (self._first, self._last):
                for gone in by_lease.keys() - set(leases):
                    del by_lease[gone]
