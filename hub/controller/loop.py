"""The scheduling loop: watch what runs, decide who starts, act.

Each cycle reads the store afresh and closes the gap between what is written and what is. A
service that was killed anywhere in it does the same again after its restart:

1. watch      ask the engine about every lease; renew, end, lose or return it
2. limits     stop what is past its time, or past the grace time after it was asked back
3. decide     snapshot → plan → leases, and notices to those whose devices are asked back
4. act        start granted jobs, stop what is stopping, ask the hub for unattended sessions

What may take long (starting, stopping, asking the hub) runs in a small thread pool, once per
lease at a time; everything else is done before the next cycle begins.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from ..errors import CarrelError, Unavailable
from ..messages.units import duration
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..runtime.context import Context
from ..runtime.loop_metrics import LoopMetrics
from ..scheduling.model.snapshot import Device, Kind
from ..scheduling.model.states import HOLDS_DEVICES, State
from .budget_enforcement import BudgetEnforcement
from .device_faults import DeviceFaults
from .idle_culling import IdleCulling
from .jobs import JobController
from .loop_memory import LoopMemory
from .node_health import NodeHealth
from .planner import Planner
from .preemption import PreemptionController
from .reconciler import LEASE_SECONDS, Reconciler
from .sessions import UNATTENDED_GRACE, SessionController

log = logging.getLogger(__name__)

CHARGE_EVERY = 60.0
BUDGETS_EVERY = 5.0
INVENTORY_EVERY = 10.0
TIDY_EVERY = 5.0
ORPHANS_EVERY = 5.0
HUB_WINDOW = 600.0
"""How long a granted session is held for a hub that does not come."""
EXIT_GRACE = 3.0
"""How long a job that has reported its end may take to exit by itself."""
IDLE_SECONDS = 1.0
BUSY_SECONDS = 0.1
"""Time between cycles without a beat: ordinarily, and while something is on its way out."""

_QUIET = frozenset({"inventory", "orphans", "idle", "tidy"})
"""Duties after which nothing has to be decided anew."""
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


class Loop:
    """One instance acts on one store; the state folder's lock sees to that."""

    def __init__(
        self,
        commands: Context,
        *,
        node: str,
        idling: IdleCulling | None = None,
        vitals: LoopMetrics | None = None,
    ) -> None:
        self._commands = commands
        self._store = commands.store
        self._backend = commands.backend
        self._plan_cache = commands.plan_cache
        self._jobs = JobController(commands)
        self._sessions = SessionController(commands)
        self._faults = DeviceFaults(commands)
        self._silence = NodeHealth(commands)
        self._placing = commands.placing
        self._node = node
        self._idling = idling
        self._vitals = vitals or LoopMetrics()
        self._memory = LoopMemory()
        self._watch = Reconciler(commands, self._faults, self._memory)
        self._planner = Planner()
        self._reclaiming = PreemptionController(commands)
        self._budgeting = BudgetEnforcement(commands)
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="act")
        self._in_flight: dict[str, Future[None]] = {}

    async def run(self) -> None:
        """Cycle until cancelled."""
        notifier = self._commands.notifier
        while True:
            seen = notifier.version
            pause = IDLE_SECONDS
            try:
                began = time.monotonic()
                pause = await asyncio.to_thread(self.cycle)
                self._vitals.cycled(time.monotonic() - began)
            except CarrelError as error:
                self._vitals.failed()
                log.warning("cycle: %s", error)
            except Exception:
                # A bug in one cycle must not end scheduling for everybody.
                self._vitals.failed()
                log.exception("cycle failed")
            # Not to wait for anything: a plan over a long queue leaves time for requests.
            await asyncio.sleep(self._planner.rest)
            await notifier.wait(seen, pause)

    def close(self) -> None:
        """Let what is under way finish; running work stays."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def cycle(self) -> float:
        """One pass over everything; returns how long to wait for a beat."""
        now = self._commands.clock()
        changed = self._silence.act(now)
        changed |= self._faults.act(now)
        holding = self._store.requests(_filter(*HOLDS_DEVICES))
        pairs = [(request.lease, request) for request in holding if request.lease is not None]
        changed |= self._watch.look(pairs, busy=set(self._in_flight), now=now)
        changed |= self._watch.limits(pairs, now)
        if self._memory.due("budgets", BUDGETS_EVERY, now):
            changed |= self._budgeting.act(pairs, now)
        changed |= self._reclaiming.act(pairs, now)
        changed |= self._decide()
        for key, tell in self._reclaiming.tellings(pairs):
            self._once(key, tell)
        stopping = self._act(now)
        self._duties(now)
        if changed:
            self._commands.notifier.notify()
        return min(BUSY_SECONDS if stopping else IDLE_SECONDS, max(0.0, self._planner.due_in()))

    # -- 3 decide -------------------------------------------------------------------------

    def _decide(self) -> bool:
        snapshot = self._placing.snapshot(self._commands.clock())
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
        asked = self._reclaiming.ask(plan.stops, now)
        return self._plan_cache.publish(plan) or bool(granted) or asked

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
        found = self._store.requests(_filter(State.QUEUED, State.GRANTED, kind=Kind.SESSION))
        waiting = [request for request in found if not request.unclaimed]
        before = self._memory.unattended
        self._memory.unattended = {
            request.id: before.get(request.id, now)
            for request in waiting
            if not self._commands.spawner_listeners.attached(request.id)
        }
        for request in waiting:
            lease = request.lease
            since = self._memory.unattended.get(request.id)
            if since is None or now - since < UNATTENDED_GRACE:
                continue
            asked = max(request.claimed_at or 0.0, lease.granted_at) if lease else now
            if request.state is State.GRANTED and now - asked > HUB_WINDOW:
                cause = Cause(
                    code=CauseCode.START_FAILED,
                    message="JupyterHub did not start the server within "
                    f"{duration(HUB_WINDOW)} of the grant.",
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
        if self._memory.due("tidy", TIDY_EVERY, now):
            self._once("tidy", self._tidy)
        if self._memory.due("orphans", ORPHANS_EVERY, now):
            self._once("orphans", self._sessions.find_orphans)
        if self._idling is not None and self._memory.due("idle", self._idling.every, now):
            self._once("idle", self._idling.look)

    def inventory(self) -> None:
        """Write down which devices there are now; a driver that hangs leaves the last list."""
        before, began = self._store.devices(), self._commands.clock()
        try:
            seen = self._backend.inventory()
            self._write_down(seen)
            self._faults.found(seen, began=began)
        except Unavailable as error:
            log.warning("inventory: %s", error)
            self._faults.looked(began)
        self._store.note_capacity(began)
        if self._store.devices() != before:
            self._commands.notifier.notify()

    def _write_down(self, seen: Sequence[Device]) -> None:
        """Of an engine with several machines each one's own; a silent one's stay as they were."""
        states = self._backend.nodes()
        if not states:
            return self._store.sync_devices(self._node, seen)
        for state in states:
            own = [device for device in seen if device.node == state.name]
            if own or not state.why_not:
                self._store.sync_devices(state.name, own)

    def _tidy(self) -> None:
        self._backend.remove_orphans(self._leases)

    def _leases(self) -> frozenset[str]:
        held = self._store.requests(_filter(*HOLDS_DEVICES))
        return frozenset(request.lease.id for request in held if request.lease is not None)

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
        if key not in _QUIET:
            self._commands.notifier.notify()


def _filter(*states: State, kind: Kind | None = None) -> RequestFilter:
    return RequestFilter(states=frozenset(states), kind=kind, limit=100_000)
