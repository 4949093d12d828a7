"""The scheduling loop: watch what runs, decide who starts, act.

Each cycle reads the store afresh and closes the gap between what is written and what is. A
service that was killed anywhere in it does the same again after its restart:

1. watch      ask the engine about every lease; renew, end, lose or return it
2. limits     stop what is past its time
3. decide     snapshot → plan → leases
4. act        start granted jobs, stop what is stopping, ask the hub for unattended sessions

What may take long (starting, stopping, asking the hub) runs in a small thread pool, once per
lease at a time; everything else is done before the next cycle begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from .actions import UNATTENDED_GRACE, JobActions, SessionActions
from .commands import Commands
from .errors import CarrelError, StaleEpoch, Unavailable
from .planning import Planner
from .ports.backend import Life, Sighting
from .ports.records import (
    Cause,
    CauseCode,
    Handle,
    LeaseRecord,
    LeaseState,
    RequestFilter,
    RequestRecord,
)
from .scheduling.lifecycle import HOLDS_DEVICES, MAY_RUN, State
from .scheduling.model import Kind
from .wording import duration

log = logging.getLogger(__name__)

LEASE_SECONDS = 30.0
RENEW_EVERY = 5.0
"""Between two writes of a sign of life; the loop's own memory is fresher."""
CHARGE_EVERY = 60.0
INVENTORY_EVERY = 10.0
ORPHANS_EVERY = 5.0
CLAIM_WINDOW = 600.0
"""How long a granted session is held for a hub that does not come."""
EXIT_GRACE = 3.0
"""How long a job that has reported its end may take to exit by itself."""
IDLE_SECONDS = 1.0
BUSY_SECONDS = 0.1
"""Time between cycles without a beat: ordinarily, and while something is on its way out."""

_BY_ITSELF = frozenset(
    {
        CauseCode.SUCCEEDED,
        CauseCode.CELL_ERROR,
        CauseCode.COMMAND_FAILED,
        CauseCode.KERNEL_DIED,
        CauseCode.OUT_OF_MEMORY,
        CauseCode.START_FAILED,
    }
)

Pairs = Sequence[tuple[LeaseRecord, RequestRecord]]


@dataclass(slots=True)
class Memory:
    """What the loop knows beyond the store; all of it may be lost."""

    seen: dict[str, float] = field(default_factory=dict)
    """Last sign of life by lease."""
    handles: dict[str, Handle] = field(default_factory=dict)
    """What the backend returned, until the attempt has reported itself."""
    unattended: dict[str, float] = field(default_factory=dict)
    """Since when a waiting session has had no spawner at the hub."""
    stopping: dict[str, float] = field(default_factory=dict)
    """Since when a lease is on its way out."""
    last: dict[str, float] = field(default_factory=dict)
    """When each periodic duty was last done."""

    def due(self, duty: str, every: float, now: float) -> bool:
        if now - self.last.get(duty, 0.0) < every:
            return False
        self.last[duty] = now
        return True

    def forget(self, lease_id: str) -> None:
        for known in (self.seen, self.handles, self.stopping):
            known.pop(lease_id, None)


class Loop:
    """One instance acts on one store; the state folder's lock sees to that."""

    def __init__(self, commands: Commands, *, node: str) -> None:
        self._commands = commands
        self._store = commands.store
        self._backend = commands.backend
        self._board = commands.board
        self._jobs = JobActions(commands)
        self._sessions = SessionActions(commands)
        self._node = node
        self._memory = Memory()
        self._planner = Planner()
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="act")
        self._in_flight: dict[str, Future[None]] = {}

    async def run(self) -> None:
        """Cycle until cancelled."""
        pulse = self._commands.pulse
        while True:
            seen = pulse.count
            pause = IDLE_SECONDS
            try:
                pause = await asyncio.to_thread(self.cycle)
            except CarrelError as error:
                log.warning("cycle: %s", error)
            except Exception:
                # A bug in one cycle must not end scheduling for everybody.
                log.exception("cycle failed")
            await asyncio.sleep(self._planner.rest)
            await pulse.after(seen, pause)

    def close(self) -> None:
        """Let what is under way finish; running work stays."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def cycle(self) -> float:
        """One pass over everything; returns how long to wait for a beat."""
        now = self._commands.clock()
        holding = self._store.requests(_filter(*HOLDS_DEVICES))
        pairs = [(request.lease, request) for request in holding if request.lease is not None]
        changed = self._watch(pairs, now)
        changed |= self._limits(pairs, now)
        changed |= self._decide()
        stopping = self._act(now)
        self._duties(now)
        if changed:
            self._commands.pulse.beat()
        return min(BUSY_SECONDS if stopping else IDLE_SECONDS, max(0.0, self._planner.due_in()))

    # -- 1 watch --------------------------------------------------------------------------

    def _watch(self, pairs: Pairs, now: float) -> bool:
        running = [(lease, request) for lease, request in pairs if request.state in MAY_RUN]
        handles = {
            lease.id: lease.handle or self._memory.handles.get(lease.id) for lease, _ in running
        }
        # What is being started or stopped while the engine is asked looks dead or alive by
        # chance; it tells by itself, and the next cycle sees it.
        busy = set(self._in_flight)
        sightings = self._backend.look(handles) if handles else {}
        changed = False
        for lease, request in running:
            if lease.id in busy and sightings[lease.id].life is Life.DEAD:
                continue
            try:
                changed |= self._reconcile(lease, request, sightings[lease.id], now)
            except StaleEpoch:
                changed = True  # It moved on while we looked; the next cycle sees how.
        self._renew(pairs, now)
        return changed

    def _reconcile(
        self, lease: LeaseRecord, request: RequestRecord, sighting: Sighting, now: float
    ) -> bool:
        if sighting.life is Life.UNKNOWN:
            return False
        if sighting.life is Life.ALIVE:
            return self._alive(lease, request, sighting, now)
        seen = max(lease.seen_at, self._memory.seen.get(lease.id, 0.0))
        session = request.kind is Kind.SESSION
        match request.state:
            case State.STARTING if session:
                if not self._sessions.not_started(lease, request):
                    return False
            case State.STARTING:
                self._jobs.not_started(lease, request)
            case State.RUNNING if session:
                self._sessions.died(lease, request, seen)
            case State.RUNNING:
                self._jobs.died(lease, request, seen)
            case _:
                last = 0.0 if session else self._jobs.collect(lease, request)
                self._store.finish(lease.id, now=now, charge_until=min(now, max(seen, last)))
        self._memory.forget(lease.id)
        return True

    def _alive(
        self, lease: LeaseRecord, request: RequestRecord, sighting: Sighting, now: float
    ) -> bool:
        self._memory.seen[lease.id] = now
        starting = request.state is State.STARTING and request.kind is Kind.SESSION
        if starting and sighting.handle and not self._board.attached(request.id):
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

    # -- 2 limits -------------------------------------------------------------------------

    def _limits(self, pairs: Pairs, now: float) -> bool:
        changed = False
        for lease, request in pairs:
            over = now - lease.granted_at >= request.seconds
            if over and request.state in (State.GRANTED, State.STARTING, State.RUNNING):
                cause = Cause(
                    code=CauseCode.TIME_LIMIT,
                    message=f"Its time limit of {duration(request.seconds)} is over.",
                )
                self._store.stop(request.id, State.TIMED_OUT, cause, now=now)
                changed = True
        return changed

    # -- 3 decide -------------------------------------------------------------------------

    def _decide(self) -> bool:
        snapshot = self._store.snapshot()
        # Later than whatever gave back the devices that are free in this snapshot: leases of one
        # device then follow each other, and no moment of it is charged to two of them.
        now = self._commands.clock()
        plan = self._planner.plan(snapshot, now)
        if plan is None:
            return False
        granted = (
            self._store.grant(plan.starts, now=now, lease_seconds=LEASE_SECONDS)
            if plan.starts
            else ()
        )
        for lease in granted:
            log.info("granted %s: %s", lease.id, ", ".join(lease.devices) or "CPU")
        return self._board.publish(plan) or bool(granted)

    # -- 4 act ----------------------------------------------------------------------------

    def _act(self, now: float) -> bool:
        """Begin what is to be begun; returns whether something is on its way out."""
        stopping = False
        for request in self._store.requests(_filter(State.GRANTED, State.STOPPING)):
            lease = request.lease
            if lease is None or lease.id in self._in_flight:
                stopping |= request.state is State.STOPPING
            elif request.state is State.STOPPING:
                stopping = True
                self._see_out(lease, request, now)
            elif request.kind is not Kind.SESSION:
                self._once(lease.id, partial(self._start, lease, request))
        self._attend(now)
        return stopping

    def _see_out(self, lease: LeaseRecord, request: RequestRecord, now: float) -> None:
        first = lease.id not in self._memory.stopping
        since = self._memory.stopping.setdefault(lease.id, now)
        by_itself = request.cause is not None and request.cause.code in _BY_ITSELF
        if request.kind is Kind.SESSION:
            if first:
                self._once(f"hub/{request.id}", partial(self._sessions.tell_hub, request))
        elif by_itself and now - since < EXIT_GRACE:
            return
        self._once(lease.id, partial(self._stop, lease))

    def _attend(self, now: float) -> None:
        """Find waiting sessions that no spawner listens for, and ask the hub for one."""
        waiting = self._store.requests(_filter(State.QUEUED, State.GRANTED, kind=Kind.SESSION))
        before = self._memory.unattended
        self._memory.unattended = {
            request.id: before.get(request.id, now)
            for request in waiting
            if not self._board.attached(request.id)
        }
        for request in waiting:
            lease = request.lease
            since = self._memory.unattended.get(request.id)
            if since is None or now - since < UNATTENDED_GRACE:
                continue
            if lease and request.state is State.GRANTED and now - lease.granted_at > CLAIM_WINDOW:
                cause = Cause(
                    code=CauseCode.START_FAILED,
                    message="JupyterHub did not start the server within "
                    f"{duration(CLAIM_WINDOW)} of the grant.",
                )
                self._store.stop(request.id, State.FAILED, cause, now=now)
                continue
            self._memory.unattended[request.id] = now  # The next question after another grace.
            self._once(f"hub/{request.id}", partial(self._sessions.ask_hub, request))

    def _start(self, lease: LeaseRecord, request: RequestRecord) -> None:
        handle = self._jobs.start(lease, request)
        if handle is not None:
            self._memory.handles[lease.id] = handle

    def _stop(self, lease: LeaseRecord) -> None:
        handle = lease.handle or self._memory.handles.get(lease.id)
        if not self._backend.stop(lease.id, handle):
            log.warning("%s does not end: its devices stay taken", lease.id)

    # -- periodic duties ------------------------------------------------------------------

    def _duties(self, now: float) -> None:
        if self._memory.due("charge", CHARGE_EVERY, now):
            self._store.charge(now=now)
        if self._memory.due("inventory", INVENTORY_EVERY, now):
            self._once("inventory", self.inventory)
        if self._memory.due("orphans", ORPHANS_EVERY, now):
            self._once("orphans", self._sessions.find_orphans)

    def inventory(self) -> None:
        """Write down which devices there are now; a driver that hangs leaves the last list."""
        before = self._store.devices()
        try:
            self._store.sync_devices(self._node, self._backend.inventory())
        except Unavailable as error:
            log.warning("inventory: %s", error)
        if self._store.devices() != before:
            self._commands.pulse.beat()

    # -- threads --------------------------------------------------------------------------

    def _once(self, key: str, action: Callable[[], None]) -> None:
        """Run it in a thread unless the same is under way."""
        if key in self._in_flight:
            return
        future = self._threads.submit(action)
        self._in_flight[key] = future
        future.add_done_callback(partial(self._done, key))

    def _done(self, key: str, future: Future[None]) -> None:
        self._in_flight.pop(key, None)
        error = None if future.cancelled() else future.exception()
        if isinstance(error, CarrelError):
            log.warning("%s: %s", key, error)
        elif error is not None:
            log.error("%s failed", key, exc_info=error)
        if key not in ("inventory", "orphans"):
            self._commands.pulse.beat()


def _filter(*states: State, kind: Kind | None = None) -> RequestFilter:
    return RequestFilter(states=frozenset(states), kind=kind, limit=100_000)
