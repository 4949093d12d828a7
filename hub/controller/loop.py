"""The scheduling loop: reconcile, decide, act.

Each cycle reads the store again and closes the gap between the stored and the real state. A
service that was killed anywhere in a cycle does the same after its restart:

1. reconcile  read the status of every lease from the backend; renew, charge, end, lose or return it
2. limits     stop requests past their time limit, grace period or claim window
3. decide     snapshot → plan → leases, and preemption notices
4. act        start granted jobs, stop stopping requests, ask JupyterHub for unattended sessions

Actions that may take long (starts, stops, requests to JupyterHub) run in a small thread pool, one
per lease at a time; everything else is done before the next cycle begins.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from functools import partial

from ..efficiency.recorder import JobSignRecorder
from ..errors import CarrelError, Unavailable
from ..forecasts.recorder import ForecastRecorder
from ..interfaces.clock import MonotonicClock, monotonic
from ..messages.units import duration
from ..programs import enforcement as programs
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..runtime.context import Context
from ..runtime.loop_metrics import LoopMetrics
from ..runtime.service_clock import ServiceClock
from ..runtime.snapshots import SnapshotReader
from ..scheduling.model.snapshot import Device, Kind
from ..scheduling.model.states import HOLDS_DEVICES, State
from ..sessions.server_start import start_server
from ..shadow_order.recorder import ShadowRecorder
from ..transitions import lifecycle
from ..workflows.due_schedules import DueSchedules
from ..workflows.rehearsal_schedules import RehearsalSchedules
from .budget_enforcement import BudgetEnforcement
from .clock_steps import ClockSteps
from .dependencies import DependencyController
from .device_faults import DeviceFaults
from .devices.device_condition import DeviceCondition
from .devices.device_validation import (
    DeviceValidation,
    measured_devices,
    without_own_process,
)
from .driver_health import DriverHealth
from .gangs import GangController
from .idle_culling import IdleCulling
from .jobs import JobController
from .loop_memory import LoopMemory, Pairs
from .node_health import NodeHealth
from .planner import Planner
from .preemption import PreemptionController
from .reconciler import LEASE_SECONDS, Reconciler
from .sessions import UNATTENDED_GRACE, SessionController
from .time_limits import TimeLimits
from .utilization import UtilizationSampler

log = logging.getLogger(__name__)

BUDGETS_EVERY = 5.0
INVENTORY_EVERY = 10.0
PROCESS_CLEANUP_EVERY = 5.0
SESSION_ADOPTION_EVERY = 5.0
SCHEDULES_EVERY = 1.0
SIGNS_EVERY = 30.0
VALIDATION_EVERY = 5.0
HUB_WINDOW = 600.0
"""How long a granted session waits for JupyterHub to start its server."""
EXIT_GRACE = 3.0
"""How long a job that has reported its end may take to exit by itself."""
IDLE_SECONDS = 1.0
BUSY_SECONDS = 0.1
"""Seconds between cycles without a notification: ordinarily, and while requests are stopping."""

_INVENTORY, _IDLE = "inventory", "idle"
_PROCESS_CLEANUP, _SESSION_ADOPTION = "process-cleanup", "session-adoption"
_SCHEDULES, _UTILIZATION, _FORECASTS = "schedules", "utilization", "forecasts"
_SHADOW, _VALIDATION = "shadow", "validation"
_SIGNS = "job-signs"
_QUIET = frozenset(
    {
        _INVENTORY,
        _IDLE,
        _PROCESS_CLEANUP,
        _SESSION_ADOPTION,
        _SCHEDULES,
        _UTILIZATION,
        _FORECASTS,
        _SHADOW,
        _SIGNS,
    }
)
"""Duties after which no new scheduling decision is needed."""
_SELF_ENDED = frozenset(
    {
        CauseCode.SUCCEEDED,
        CauseCode.CELL_ERROR,
        CauseCode.COMMAND_FAILED,
        CauseCode.KERNEL_DIED,
        CauseCode.OUT_OF_MEMORY,
        CauseCode.START_FAILED,
        CauseCode.INVALID_JOB,
        CauseCode.KERNEL_NOT_STARTED,
        CauseCode.CONNECTION_FAILED,
        CauseCode.DISK_FULL,
        CauseCode.TEMPORARY_FAILURE,
    }
)


class Loop:
    """Runs the cycles; exactly one instance per store, by the lock of the state folder.

    Args:
        shadow: compares decisions with those of a learned order.
        threads: for actions that may take long; a pool of the loop's own by default.
        decision_clock: measures decisions: the next ones wait after one that took long.
    """

    def __init__(
        self,
        context: Context,
        *,
        node: str,
        idle_culling: IdleCulling | None = None,
        validation: DeviceValidation | None = None,
        metrics: LoopMetrics | None = None,
        service_clock: ServiceClock | None = None,
        rehearsals: RehearsalSchedules | None = None,
        shadow: ShadowRecorder | None = None,
        threads: Executor | None = None,
        decision_clock: MonotonicClock = monotonic,
    ) -> None:
        self._context = context
        self._store = context.store
        self._backend = context.backend
        self._plan_cache = context.plan_cache
        self._jobs = JobController(context)
        self._sessions = SessionController(context)
        self._gangs = GangController(context)
        self._schedules = DueSchedules(context, rehearsals)
        self._node_health = NodeHealth(context)
        self._driver_health = DriverHealth(context)
        self._snapshots = SnapshotReader.of(context)
        self._node = node
        self._idle_culling = idle_culling
        self._validation = validation
        self._metrics = metrics or LoopMetrics()
        self._clock_steps = ClockSteps(context, service_clock)
        self._utilization = UtilizationSampler(context)
        self._signs = JobSignRecorder(context, self._utilization.series)
        self._time_limits = TimeLimits(context)
        self._dependencies = DependencyController(context)
        self._budgets = BudgetEnforcement(context)
        self._programs = programs.ProgramEnforcement(context)
        self._forecasts = ForecastRecorder(context)
        self._shadow = shadow
        self._threads = threads or ThreadPoolExecutor(max_workers=16, thread_name_prefix="act")
        self._in_flight: dict[str, Future[None]] = {}
        self._decision_clock = decision_clock
        self._reset()

    def _reset(self) -> None:
        """Drop all state that is not in the store, as a restart does."""
        self._memory = LoopMemory()
        self._device_faults = DeviceFaults(self._context)
        booted_at = self._validation.booted_at if self._validation is not None else 0.0
        self._device_condition = DeviceCondition(
            self._context, self._utilization, booted_at, self._node
        )
        self._reconciler = Reconciler(
            self._context, self._device_faults, self._device_condition, self._memory
        )
        self._planner = Planner(self._decision_clock)
        self._preemption = PreemptionController(self._context)
        self._utilization.forget()
        self._signs.forget()
        if self._idle_culling is not None:
            self._idle_culling.forget()

    async def run(self) -> None:
        """Cycle until cancelled."""
        notifier = self._context.notifier
        while True:
            seen = notifier.version
            pause = IDLE_SECONDS
            try:
                began = time.monotonic()
                pause = await asyncio.to_thread(self.cycle)
                self._metrics.record_cycle(time.monotonic() - began)
            except CarrelError as error:
                self._metrics.record_failure()
                log.warning("cycle: %s", error)
            except Exception:
                # A bug in one cycle must not end scheduling.
                self._metrics.record_failure()
                log.exception("cycle failed")
            # After a decision about a long queue, the processor is left to submissions.
            await asyncio.sleep(self._planner.rest)
            await notifier.wait(seen, pause)

    def wait_for_actions(self, seconds: float) -> bool:
        """Wait at most this long for the actions in flight; return whether all have ended."""
        return not wait(list(self._in_flight.values()), timeout=seconds).not_done

    def close(self) -> None:
        """Wait for started actions; running jobs and sessions continue."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def cycle(self) -> float:
        """Run one cycle; return how long to wait for a notification before the next."""
        if self._clock_steps.follow():
            self._reset()
        now = self._context.clock()
        changed = self._node_health.reconcile(now)
        changed |= self._device_faults.reconcile(now)
        pairs = self._pairs()
        changed |= self._reconciler.reconcile(pairs, now, busy=set(self._in_flight))
        if self._memory.postponed:
            pairs = self._pairs()  # the time limit counts from the new start
        for lease, request in self._gangs.incomplete(pairs):
            self._once(lease.id, partial(self._stop, lease, request))
        changed |= self._time_limits.reconcile(pairs, now)
        if self._memory.due("budgets", BUDGETS_EVERY, now):
            changed |= self._budgets.reconcile(pairs, now)
        if self._memory.due("programs", programs.EVERY, now):
            changed |= self._programs.reconcile(now)
        changed |= self._preemption.reconcile(pairs, now)
        changed |= self._dependencies.reconcile(now)
        self._validate(now)
        changed |= self.decide()
        for key, deliver in self._preemption.deliveries(pairs):
            self._once(key, deliver)
        stopping = self._act(now)
        self._run_duties(now)
        if changed:
            self._context.notifier.notify()
        return min(BUSY_SECONDS if stopping else IDLE_SECONDS, max(0.0, self._planner.due_in()))

    def _pairs(self) -> Pairs:
        holding = self._store.requests(_filter(*HOLDS_DEVICES))
        return [(request.lease, request) for request in holding if request.lease is not None]

    # -- 3 decide -------------------------------------------------------------------------

    def decide(self) -> bool:
        """Grant leases and give preemption notices; return whether anything changed."""
        snapshot = self._snapshots.snapshot(self._context.clock())
        # This time is later than the release of every device that is free in the snapshot: leases
        # of one device never overlap, and no device second is charged twice.
        now = self._context.clock()
        plan = self._planner.plan(snapshot, now)
        if self._shadow is not None:
            self._shadow.note(snapshot, now, starts=plan is not None and bool(plan.starts))
        if plan is None:
            return False
        granted = (
            self._store.grant(plan.starts, now=now, lease_seconds=LEASE_SECONDS)
            if plan.starts
            else ()
        )
        for lease in granted:
            log.info("granted %s: %s", lease.id, ", ".join(lease.devices) or "CPU")
        notified = self._preemption.give_notices(plan.stops, now)
        self._forecasts.note(plan, granted, now)
        return self._plan_cache.publish(plan) or bool(granted) or notified

    def _validate(self, now: float) -> None:
        """Take devices that are due for a validation out of service before the decision."""
        validation = self._validation
        if validation is None or _VALIDATION in self._in_flight:
            return
        if not self._memory.due(_VALIDATION, VALIDATION_EVERY, now):
            return
        measure = validation.choose(now, self._device_condition.doubted_at)
        if measure is not None:
            self._measure(measure)

    # -- 4 act ----------------------------------------------------------------------------

    def _act(self, now: float) -> bool:
        """Start and stop what is due; return whether anything is stopping."""
        stopping = False
        for request in self._store.requests(_filter(State.GRANTED, State.STOPPING)):
            lease = request.lease
            if lease is None or lease.id in self._in_flight:
                stopping |= request.state is State.STOPPING
            elif request.state is State.STOPPING:
                stopping = True
                self._act_on_stopping(lease, request, now)
            elif request.kind is not Kind.SESSION:
                self._once(lease.id, partial(self._start, lease, request))
        self._start_unattended(now)
        return stopping

    def _act_on_stopping(self, lease: LeaseRecord, request: RequestRecord, now: float) -> None:
        first = lease.id not in self._memory.stopping
        since = self._memory.stopping.setdefault(lease.id, now)
        self_ended = request.cause is not None and request.cause.code in _SELF_ENDED
        # The other members of a gang whose end is decided do not end by themselves.
        self_ended = self_ended and all(member.end is not None for member in lease.members)
        if request.kind is Kind.SESSION:
            if first:
                self._once(f"hub/{request.id}", partial(self._sessions.stop_server, request))
        elif self_ended and now - since < EXIT_GRACE:
            if first:
                handle = lease.handle or self._memory.handles.get(lease.id)
                self._once(f"exit/{lease.id}", partial(self._backend.wait_for_exit, handle))
            return
        self._once(lease.id, partial(self._stop, lease, request))

    def _start_unattended(self, now: float) -> None:
        """Ask JupyterHub to start the server of each waiting session that has no spawner.

        A granted session that JupyterHub does not start within ``HUB_WINDOW`` fails.
        """
        sessions = self._store.requests(_filter(State.QUEUED, State.GRANTED, kind=Kind.SESSION))
        waiting = [request for request in sessions if not request.unclaimed]
        before = self._memory.unattended
        self._memory.unattended = {
            request.id: before.get(request.id, now)
            for request in waiting
            if not self._context.spawner_listeners.attached(request.id)
        }
        for request in waiting:
            lease = request.lease
            since = self._memory.unattended.get(request.id)
            if since is None or now - since < UNATTENDED_GRACE:
                continue
            granted = max(request.claimed_at or 0.0, lease.granted_at) if lease else now
            if request.state is State.GRANTED and now - granted > HUB_WINDOW:
                cause = Cause(
                    code=CauseCode.START_FAILED,
                    message="JupyterHub did not start the server within "
                    f"{duration(HUB_WINDOW)} of the grant.",
                )
                self._store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
                continue
            # JupyterHub is asked again after another grace period.
            self._memory.unattended[request.id] = now
            self._once(f"hub/{request.id}", partial(start_server, self._context, request))

    def _start(self, lease: LeaseRecord, request: RequestRecord) -> None:
        self._memory.handles.update(self._jobs.start(lease, request))

    def _stop(self, lease: LeaseRecord, request: RequestRecord) -> None:
        handle = lease.handle or self._memory.handles.get(lease.id)
        if not self._backend.stop(lease.id, handle, trusted=request.trusted):
            log.warning("%s does not end: its devices stay allocated", lease.id)

    # -- periodic duties ------------------------------------------------------------------

    def _run_duties(self, now: float) -> None:
        if self._memory.due(_INVENTORY, INVENTORY_EVERY, now):
            self._once(_INVENTORY, self.inventory)
        if self._memory.due(_PROCESS_CLEANUP, PROCESS_CLEANUP_EVERY, now):
            self._once(_PROCESS_CLEANUP, self._remove_orphans)
        if self._memory.due(_SESSION_ADOPTION, SESSION_ADOPTION_EVERY, now):
            self._once(_SESSION_ADOPTION, self._sessions.adopt_orphans)
        if self._memory.due(_SCHEDULES, SCHEDULES_EVERY, now):
            self._once(_SCHEDULES, self._schedules.reconcile)
        if self._memory.due(_UTILIZATION, self._utilization.every, now):
            self._once(_UTILIZATION, self._utilization.reconcile)
        if self._memory.due(_SIGNS, SIGNS_EVERY, now):
            self._once(_SIGNS, self._signs.reconcile)
        if self._forecasts.pending:
            self._once(_FORECASTS, self._forecasts.store)
        if self._shadow is not None and self._shadow.pending:
            self._once(_SHADOW, self._shadow.compare)
        culling = self._idle_culling
        if culling is not None and self._memory.due(_IDLE, culling.every, now):
            self._once(_IDLE, culling.reconcile)

    def inventory(self) -> None:
        """Store the current list of devices; keep the last list while an engine is silent."""
        before, began = self._store.devices(), self._context.clock()
        measured = measured_devices(self._context)
        try:
            listed = self._backend.inventory()
            measured |= measured_devices(self._context)
            reported = self._driver_health.reconcile(without_own_process(listed, measured), began)
            self._store_devices(reported)
            self._device_faults.quarantine_failed(reported, began=began)
            self._device_condition.observe(reported, began)
        except Unavailable as error:
            log.warning("inventory: %s", error)
            self._device_faults.record_inventory(began)
        self._store.note_capacity(began)
        if self._store.devices() != before:
            self._context.notifier.notify()

    def _store_devices(self, reported: Sequence[Device]) -> None:
        """Store the devices of each node, except of nodes that do not answer."""
        states = self._backend.nodes()
        if not states:
            return self._store.sync_devices(self._node, reported)
        for state in states:
            own = [device for device in reported if device.node == state.name]
            if own or not state.why_not:
                self._store.sync_devices(state.name, own)

    def _remove_orphans(self) -> None:
        self._backend.remove_orphans(self._live_leases)

    def _live_leases(self) -> frozenset[str]:
        held = self._store.requests(_filter(*HOLDS_DEVICES))
        return frozenset(request.lease.id for request in held if request.lease is not None)

    # -- threads --------------------------------------------------------------------------

    def _once(self, key: str, action: Callable[[], None]) -> None:
        """Run the action in a thread, unless an action with this key is running."""
        if key in self._in_flight:
            return
        future = self._threads.submit(action)
        self._in_flight[key] = future
        future.add_done_callback(partial(self._done, key))

    def _measure(self, measure: Callable[[], None]) -> None:
        """Run a validation in a thread that the end of the service does not wait for.

        The child that measures ends with the service, and the next service removes the marks.
        """
        future: Future[None] = Future()
        self._in_flight[_VALIDATION] = future
        future.add_done_callback(partial(self._done, _VALIDATION))

        def run() -> None:
            try:
                measure()
            except BaseException as error:  # it is logged by ``_done``
                future.set_exception(error)
            else:
                future.set_result(None)

        threading.Thread(target=run, name="validation", daemon=True).start()

    def _done(self, key: str, future: Future[None]) -> None:
        self._in_flight.pop(key, None)
        error = None if future.cancelled() else future.exception()
        if isinstance(error, CarrelError):
            log.warning("%s: %s", key, error)
        elif error is not None:
            log.error("%s failed", key, exc_info=error)
        # What failed is tried again, and would fail again at once.
        if key not in _QUIET and error is None:
            self._context.notifier.notify()


def _filter(*states: State, kind: Kind | None = None) -> RequestFilter:
    return RequestFilter(states=frozenset(states), kind=kind, limit=100_000)
