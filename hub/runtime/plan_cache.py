"""The newest plan, where everybody who shows a queue reads it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from itertools import islice

from ..scheduling.model.idleness import KernelReport
from ..scheduling.model.plan import Plan, Wait
from .kernel_reports import TOLD_SECONDS
from .pending_server_starts import ASK_SECONDS


class PlanCache:
    """Holds the waits of the last cycle, who listens on behalf of a session, and for which
    requests the hub was asked to start a server, and what sessions tell of their kernels."""

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}
        self._listeners: dict[str, int] = {}
        self._asked: dict[tuple[str, str], tuple[str, float]] = {}
        self._kernels: dict[str, tuple[KernelReport, float]] = {}
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

    @property
    def waits(self) -> Mapping[str, Wait]:
        """By request, as the last plan left them; another plan is another mapping."""
        return self._waits

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

    def tell_kernels(self, request_id: str, kernels: KernelReport, *, now: float) -> None:
        """A session says what its kernels do."""
        self._kernels[request_id] = kernels, now

    def kernels_of(self, request_id: str, *, now: float) -> KernelReport | None:
        """What it said last; None where that is too long ago to be true still."""
        kernels, at = self._kernels.get(request_id, (None, 0.0))
        return kernels if 0 <= now - at < TOLD_SECONDS else None

    def forget_kernels(self, but: Collection[str]) -> None:
        """Of all requests but these."""
        for request_id in set(self._kernels) - set(but):
            del self._kernels[request_id]

    def ask(self, owner: str, server_name: str, request_id: str, *, now: float) -> None:
        """The hub is about to be asked for this server, for the sake of this request."""
        self._asked[owner, server_name] = request_id, now

    def asked_for(self, owner: str, server_name: str, *, now: float) -> str | None:
        """The request for which the hub was asked a moment ago."""
        request_id, at = self._asked.get((owner, server_name), (None, 0.0))
        return request_id if now - at < ASK_SECONDS else None

    def answered(self, owner: str, server_name: str) -> None:
        """A later start of this server is somebody's own wish."""
        self._asked.pop((owner, server_name), None)
