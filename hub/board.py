"""The newest plan, where everybody who shows a queue reads it."""

from __future__ import annotations

import threading
from itertools import islice

from .scheduling.model import Plan, Wait


class Board:
    """Holds the waits of the last cycle, and who listens on behalf of a session."""

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}
        self._listeners: dict[str, int] = {}
        self._lock = threading.Lock()

    def publish(self, plan: Plan) -> bool:
        """Returns whether anything that people see has changed."""
        waits = {wait.request_id: wait for wait in plan.waits}
        changed = waits != self._waits
        self._waits = waits
        return changed

    def queue(self, limit: int) -> tuple[Wait, ...]:
        """The first of those that wait, in order."""
        return tuple(islice(self._waits.values(), limit))

    @property
    def waiting(self) -> int:
        return len(self._waits)

    def wait_of(self, request_id: str) -> Wait | None:
        return self._waits.get(request_id)

    def attach(self, request_id: str) -> None:
        """A spawner of the hub listens to this request from now on."""
        with self._lock:
            self._listeners[request_id] = self._listeners.get(request_id, 0) + 1

    def detach(self, request_id: str) -> None:
        with self._lock:
            left = self._listeners.get(request_id, 0) - 1
            if left > 0:
                self._listeners[request_id] = left
            else:
                self._listeners.pop(request_id, None)

    def attached(self, request_id: str) -> bool:
        """Whether the hub has a spawner that will act on a grant."""
        return request_id in self._listeners
