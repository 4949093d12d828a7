"""Count the JupyterHub spawners that listen to each session request."""

from __future__ import annotations

import threading


class SpawnerListeners:
    """The number of spawners that listen to each request; thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def attach(self, request_id: str) -> None:
        """Add a spawner that listens to this request."""
        with self._lock:
            self._counts[request_id] = self._counts.get(request_id, 0) + 1

    def detach(self, request_id: str) -> None:
        """Remove a spawner; a request without listeners is dropped."""
        with self._lock:
            left = self._counts.get(request_id, 0) - 1
            if left > 0:
                self._counts[request_id] = left
            else:
                self._counts.pop(request_id, None)

    def attached(self, request_id: str) -> bool:
        """Return whether a spawner listens, and will act when this request is granted."""
        return request_id in self._counts
