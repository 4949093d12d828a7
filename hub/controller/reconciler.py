"""Close the gap between the stored state of each lease and its processes.

The backend is asked about every process. What has ended, was lost or never began is stored; the
lease of what lives is renewed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ..errors import StaleEpoch
from ..interfaces.backend import AttemptStatus, ProcessState
from ..records.leases import LeaseRecord, LeaseState
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import MAY_RUN, State
from ..transitions import lifecycle
from .device_faults import DeviceFaults
from .jobs import JobController
from .loop_memory import LoopMemory, Pairs
from .sessions import SessionController

log = logging.getLogger(__name__)

LEASE_SECONDS = 30.0
RENEW_EVERY = 5.0
"""Seconds between two stored renewals; the loop remembers newer signs of life."""


class Reconciler:
    """Called by the loop in every cycle, with the loop's memory."""

    def __init__(self, context: Context, faults: DeviceFaults, memory: LoopMemory) -> None:
        self._context = context
        self._store = context.store
        self._jobs = JobController(context)
        self._sessions = SessionController(context)
        self._faults = faults
        self._memory = memory

    def reconcile(self, pairs: Pairs, now: float, *, busy: Collection[str]) -> bool:
        """Store what became of each lease; return whether anything changed.

        Args:
            busy: leases that are being started or stopped in a thread. Whether they have a
                process depends on chance, and the next cycle sees the result.
        """
        running = [(lease, request) for lease, request in pairs if request.state in MAY_RUN]
        handles = {
            lease.id: lease.handle or self._memory.handles.get(lease.id) for lease, _ in running
        }
        trusted = {lease.id for lease, request in running if request.trusted}
        backend = self._context.backend
        sightings = backend.status(handles, trusted=trusted) if handles else {}
        changed = False
        for lease, request in running:
            if lease.id in busy and sightings[lease.id].life is ProcessState.DEAD:
                continue
            try:
                changed |= self._one(lease, request, sightings[lease.id], now)
            except StaleEpoch:
                changed = True  # Changed meanwhile; the next cycle sees how.
        self._renew(pairs, now)
        return changed

    def _one(
        self, lease: LeaseRecord, request: RequestRecord, sighting: AttemptStatus, now: float
    ) -> bool:
        if sighting.life is ProcessState.UNKNOWN:
            return False
        if sighting.life is ProcessState.ALIVE:
            return self._alive(lease, request, sighting, now)
        if request.state is not State.STARTING and self._faults.undecided(lease, request, now):
            self._memory.last.pop("inventory", None)
            return False
        seen = max(lease.seen_at, self._memory.seen.get(lease.id, 0.0))
        session = request.kind is Kind.SESSION
        match request.state:
            case State.STARTING if session:
                if not self._sessions.not_started(lease, request):
                    return False
            case State.STARTING:
                self._jobs.not_started(lease, request, sighting.cause)
            case State.RUNNING if session:
                if not self._sessions.died(lease, request, seen, sighting.cause):
                    return False
            case State.RUNNING:
                self._jobs.died(lease, request, seen, sighting.cause, sighting.exit_status)
            case _:
                last = 0.0 if session else self._jobs.collect(lease, request)
                until = min(now, max(seen, last))
                if (
                    self._store.apply_to_lease(
                        lease.id, lifecycle.finish, now=now, charge_until=until
                    ).state
                    is State.QUEUED
                ):
                    self._context.progress.requeued(request.id)
        self._memory.forget(lease.id)
        return True

    def _alive(
        self, lease: LeaseRecord, request: RequestRecord, sighting: AttemptStatus, now: float
    ) -> bool:
        self._memory.seen[lease.id] = now
        starting = request.state is State.STARTING and request.kind is Kind.SESSION
        if (
            starting
            and sighting.handle
            and not self._context.spawner_listeners.attached(request.id)
        ):
            # JupyterHub died between the fork and the report: the process is adopted.
            self._store.apply_to_lease(lease.id, lifecycle.start, sighting.handle, now=now)
            return True
        return False

    def _renew(self, pairs: Pairs, now: float) -> None:
        seen = self._memory.seen
        overdue = [
            lease.id
            for lease, request in pairs
            if lease.state is LeaseState.LIVE
            and request.state in MAY_RUN
            and max(lease.expires_at, seen.get(lease.id, 0.0) + LEASE_SECONDS) < now
        ]
        if overdue:
            log.warning("no sign of life from %s: suspect", ", ".join(overdue))
            self._store.suspect(overdue)
        if not self._memory.due("renew", RENEW_EVERY, now):
            return
        # A lease that is granted and not launched yet is held by the service itself.
        held = [lease.id for lease, request in pairs if request.state is State.GRANTED]
        alive = [lease_id for lease_id, at in seen.items() if at == now]
        if held or alive:
            self._store.renew([*held, *alive], now=now, until=now + LEASE_SECONDS)
