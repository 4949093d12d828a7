"""Count the spawners of JupyterHub that listen to each session request."""

from __future__ import annotations

import threading


class SpawnerListeners:
    """How many spawners listen to each request; safe to call from any thread."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def attach(self, request_id: str) -> None:
        """Count one more spawner that listens to this request."""
        with self._lock:
            self._counts[request_id] = self._counts.get(request_id, 0) + 1

    def detach(self, request_id: str) -> None:
        """Count one spawner less; a request without listeners is forgotten."""
        with self._lock:
            left = self._counts.get(request_id, 0) - 1
            if left > 0:
                self._counts[request_id] = left
            else:
                self._counts.pop(request_id, None)

    def attached(self, request_id: str) -> bool:
        """Whether a spawner will act when this request is granted."""
        return request_id in self._counts
