"""What the loop sees of everything that holds a lease, and what it makes of it.

The engine is asked about each process; what has ended, was lost or never began is written down,
and what lives is renewed. Then what is past its time is stopped, or no longer held.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ..errors import StaleEpoch
from ..interfaces.backend import AttemptStatus, ProcessState
from ..messages.requests import unclaimed_sentence
from ..messages.units import duration
from ..records.leases import LeaseRecord, LeaseState
from ..records.requests import Cause, CauseCode, RequestRecord
from ..requests.presenter import claim_by
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import MAY_RUN, State
from .device_faults import DeviceFaults
from .jobs import JobController
from .loop_memory import LoopMemory, Pairs
from .sessions import SessionController

log = logging.getLogger(__name__)

LEASE_SECONDS = 30.0
RENEW_EVERY = 5.0
"""Between two writes of a sign of life; the loop's own memory is fresher."""


class Reconciler:
    """Kept by the loop; acts on one store, through a memory that both share."""

    def __init__(self, commands: Context, faults: DeviceFaults, memory: LoopMemory) -> None:
        self._commands = commands
        self._store = commands.store
        self._jobs = JobController(commands)
        self._sessions = SessionController(commands)
        self._faults = faults
        self._memory = memory

    def look(self, pairs: Pairs, *, busy: Collection[str], now: float) -> bool:
        """Close the gap between what is written and what is; returns whether anything changed.

        ``busy`` is what is being started or stopped meanwhile. It looks dead or alive by chance;
        it tells by itself, and the next cycle sees it.
        """
        running = [(lease, request) for lease, request in pairs if request.state in MAY_RUN]
        handles = {
            lease.id: lease.handle or self._memory.handles.get(lease.id) for lease, _ in running
        }
        sightings = self._commands.backend.status(handles) if handles else {}
        changed = False
        for lease, request in running:
            if lease.id in busy and sightings[lease.id].life is ProcessState.DEAD:
                continue
            try:
                changed |= self._reconcile(lease, request, sightings[lease.id], now)
            except StaleEpoch:
                changed = True  # It moved on while we looked; the next cycle sees how.
        self._renew(pairs, now)
        return changed

    def _reconcile(
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
                self._jobs.died(lease, request, seen, sighting.cause)
            case _:
                last = 0.0 if session else self._jobs.collect(lease, request)
                until = min(now, max(seen, last))
                if self._store.finish(lease.id, now=now, charge_until=until).state is State.QUEUED:
                    self._commands.progress.requeued(request.id)
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
            and not self._commands.spawner_listeners.attached(request.id)
        ):
            # Its hub died between the fork and the report: the process is adopted.
            self._store.started(lease.id, sighting.handle, now=now)
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
        # What is granted and not yet launched is held by the service itself.
        held = [lease.id for lease, request in pairs if request.state is State.GRANTED]
        alive = [lease_id for lease_id, at in seen.items() if at == now]
        if held or alive:
            self._store.renew([*held, *alive], now=now, until=now + LEASE_SECONDS)

    # -- limits ---------------------------------------------------------------------------

    def limits(self, pairs: Pairs, now: float) -> bool:
        """Stop what is past its time."""
        changed = False
        for lease, request in pairs:
            held_until = claim_by(request, self._commands.claim_seconds)
            if held_until is not None:
                changed |= self._hold(request, held_until, now)
                continue
            over = now - lease.granted_at >= request.seconds
            if over and request.state in (State.GRANTED, State.STARTING, State.RUNNING):
                cause = Cause(
                    code=CauseCode.TIME_LIMIT,
                    message=f"Its time limit of {duration(request.seconds)} is over.",
                )
                self._store.stop(request.id, State.TIMED_OUT, cause, now=now)
                changed = True
        return changed

    def _hold(self, request: RequestRecord, until: float, now: float) -> bool:
        """Give up what nobody has claimed; the next in line gets it in this same cycle."""
        if now < until:
            return False
        message = unclaimed_sentence(self._commands.claim_seconds, request.devices)
        cause = Cause(code=CauseCode.UNCLAIMED, message=message)
        self._store.unclaimed(request.id, cause, now=now, charge_until=until)
        return True
