"""Close the gap between the stored state of each lease and its processes.

The backend reports the status of every attempt. An end, a loss or a start that failed is stored;
the lease of a live attempt is renewed and charged.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from ..errors import StaleEpoch
from ..interfaces.backend import AttemptStatus, ProcessState
from ..records.leases import LeaseRecord, LeaseState
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..scheduling.model.plan import Estimate, Reason, Wait
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import MAY_RUN, State
from ..transitions import lifecycle
from .device_faults import DeviceFaults
from .devices.device_condition import DeviceCondition
from .gangs import GangController
from .jobs import JobController
from .loop_memory import LoopMemory, Pairs
from .retries import finish_attempt
from .sessions import SessionController

log = logging.getLogger(__name__)

LEASE_SECONDS = 30.0
RENEW_EVERY = 5.0
"""Seconds between two stored renewals; the loop remembers newer signs of life."""
CHARGE_EVERY = 60.0
_REQUEUED = "The cluster has queued its job again, although it had started."


class Reconciler:
    """Called by the loop in every cycle, with the loop's memory."""

    def __init__(
        self,
        context: Context,
        faults: DeviceFaults,
        condition: DeviceCondition,
        memory: LoopMemory,
    ) -> None:
        self._context = context
        self._store = context.store
        self._jobs = JobController(context)
        self._sessions = SessionController(context)
        self._gangs = GangController(context)
        self._faults = faults
        self._condition = condition
        self._memory = memory

    def reconcile(self, pairs: Pairs, now: float, *, busy: Collection[str]) -> bool:
        """Store the outcome of each lease; return whether anything changed.

        Args:
            busy: leases that a thread is starting or stopping. A missing process means nothing
                for them; the next cycle sees the result.
        """
        running = [(lease, request) for lease, request in pairs if request.state in MAY_RUN]
        handles = {
            lease.id: lease.handle or self._memory.handles.get(lease.id) for lease, _ in running
        }
        for lease, request in running:
            handles |= self._gangs.handles(lease, request, self._memory.handles)
        trusted = {lease.id for lease, request in running if request.trusted}
        backend = self._context.backend
        asked = max(now, self._context.clock())
        statuses = backend.status(handles, trusted=trusted) if handles else {}
        # A slow engine answers seconds later, and an attempt may have ended meanwhile.
        now = max(now, self._context.clock())
        alive = _signs_of_life({lease.id: statuses[lease.id] for lease, _ in running}, asked)
        self._memory.seen |= alive
        changed = self._postpone(running, statuses, now)
        for lease, request in running:
            if lease.id in busy and statuses[lease.id].life is ProcessState.DEAD:
                continue
            try:
                if lease.members and lease.id not in busy:
                    changed |= self._gangs.reconcile(lease, request, statuses, now)
                changed |= self._reconcile_lease(lease, request, statuses[lease.id], now)
            except StaleEpoch:
                changed = True  # The lease was changed meanwhile; the next cycle reads it again.
        self._renew(pairs, alive, now)
        self._charge(pairs, alive, now)
        return changed

    def _postpone(self, running: Pairs, statuses: Mapping[str, AttemptStatus], now: float) -> bool:
        """Charge from the time at which a cluster took the devices, and say why others wait.

        Until then nothing is charged, and the time limit does not run.
        """
        before, waiting = self._memory.waiting, dict[str, Wait]()
        starts: dict[str, float] = {}
        for lease, request in running:
            status = statuses[lease.id]
            if status.waiting:
                waiting[lease.id] = _wait(request, status)
            elif status.life is ProcessState.UNKNOWN and lease.id in before:
                waiting[lease.id] = before[lease.id]
            if status.started_at is not None and lease.charged_until == lease.granted_at:
                # Clusters give whole seconds.
                at = max(status.started_at, lease.launched_at or 0.0)
                if at != lease.granted_at:
                    starts[lease.id] = at
        self._memory.waiting = waiting
        if self._memory.due("postpone", RENEW_EVERY, now):
            starts |= dict.fromkeys(waiting, now)
        self._memory.postponed = bool(starts)
        if starts:
            self._store.postpone(starts, until=now + LEASE_SECONDS)
        return self._context.plan_cache.publish_cluster_waits(waiting.values())

    def _reconcile_lease(
        self, lease: LeaseRecord, request: RequestRecord, status: AttemptStatus, now: float
    ) -> bool:
        if status.life is ProcessState.UNKNOWN:
            return False
        if status.waiting and request.state is State.RUNNING:
            return self._requeued_by_cluster(lease, request)
        if status.waiting:
            return False
        if status.life is ProcessState.ALIVE:
            return self._alive(lease, request, status, now)
        if request.state is not State.STARTING and self._faults.awaits_inventory(
            lease, request, now
        ):
            self._memory.last.pop("inventory", None)
            return False
        seen = max(lease.seen_at, self._memory.seen.get(lease.id, 0.0))
        session = request.kind is Kind.SESSION
        match request.state:
            case State.STARTING if session:
                if not self._sessions.not_started(lease, request, status.cluster_end(seen)):
                    return False
            case State.STARTING:
                self._jobs.not_started(lease, request, seen, status)
            case State.RUNNING if session:
                if not self._sessions.died(lease, request, status.end(seen), status.cause):
                    return False
            case State.RUNNING:
                self._job_died(lease, request, seen, status)
            case _:
                self._condition.record_end(lease, request, now, seen=seen)
                last = 0.0 if session else self._collect_job(lease, request)
                until = min(now, status.end(seen, last))
                finish_attempt(self._context, lease, request, now=now, until=until)
        self._memory.forget(lease.id)
        return True

    def _collect_job(self, lease: LeaseRecord, request: RequestRecord) -> float:
        last = self._jobs.collect(lease, request)
        self._jobs.discard_offers(lease, request)
        return last

    def _job_died(
        self, lease: LeaseRecord, request: RequestRecord, seen: float, status: AttemptStatus
    ) -> None:
        self._jobs.died(lease, request, seen, status)
        if not status.lost:
            ended = self._store.request(request.id)
            self._condition.record_end(lease, ended, self._context.clock(), seen=seen)

    def _requeued_by_cluster(self, lease: LeaseRecord, request: RequestRecord) -> bool:
        """Handle the loss of an attempt that has run, and whose cluster wants to run it again.

        An attempt runs once. Its processes are gone: a user requeued it by hand, or the cluster
        crashed before it had saved that it runs.
        """
        if not self._context.backend.stop(lease.id, lease.handle):
            return False
        status = AttemptStatus(life=ProcessState.DEAD, lost=_REQUEUED)
        seen = max(lease.seen_at, self._memory.seen.get(lease.id, 0.0))
        if request.kind is not Kind.SESSION:
            self._jobs.died(lease, request, seen, status)
        elif not self._sessions.died(lease, request, seen, None):
            return False
        self._memory.forget(lease.id)
        return True

    def _alive(
        self, lease: LeaseRecord, request: RequestRecord, status: AttemptStatus, now: float
    ) -> bool:
        starting = request.state is State.STARTING and request.kind is Kind.SESSION
        if starting and status.handle and not self._context.spawner_listeners.attached(request.id):
            # JupyterHub died between the fork and the report: the process is adopted.
            self._store.apply_to_lease(lease.id, lifecycle.start, status.handle, now=now)
            return True
        return False

    def _renew(self, pairs: Pairs, alive: Mapping[str, float], now: float) -> None:
        seen = self._memory.seen
        overdue = [
            lease.id
            for lease, request in pairs
            if lease.state is LeaseState.LIVE
            and request.state in MAY_RUN
            and lease.id not in alive
            and max(lease.expires_at, seen.get(lease.id, 0.0) + LEASE_SECONDS) < now
        ]
        if overdue:
            log.warning("no sign of life from %s: marked as suspect", ", ".join(overdue))
            self._store.suspect(overdue)
        if not self._memory.due("renew", RENEW_EVERY, now):
            return
        # The service itself holds a lease that is granted and not launched yet.
        signs = {lease.id: now for lease, request in pairs if request.state is State.GRANTED}
        signs |= alive
        if signs:
            self._store.renew(signs, until=now + LEASE_SECONDS)

    def _charge(self, pairs: Pairs, alive: Mapping[str, float], now: float) -> None:
        """Charge what runs up to its last stored sign of life.

        Not what is still starting, which costs nothing if it never runs, and not what a cluster
        says nothing about, since its start may not be known yet.
        """
        if self._memory.due("charge", CHARGE_EVERY, now):
            ran = [lease.id for lease, _ in pairs if lease.handle is not None]
            self._store.charge([lease_id for lease_id in ran if lease_id in alive], now=now)


def _signs_of_life(statuses: Mapping[str, AttemptStatus], asked: float) -> dict[str, float]:
    """Return the last time at which each live attempt is known to have run."""
    return {
        lease_id: asked if status.seen_at is None else min(status.seen_at, asked)
        for lease_id, status in statuses.items()
        if status.life is ProcessState.ALIVE and not status.waiting
    }


def _wait(request: RequestRecord, status: AttemptStatus) -> Wait:
    at = status.expected_at
    return Wait(
        request_id=request.id,
        place=0,
        reason=Reason.CLUSTER,
        detail=status.waiting,
        estimate=None if at is None else Estimate(at=at, latest=at),
    )
