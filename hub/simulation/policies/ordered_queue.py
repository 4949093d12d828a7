"""Scheduler for the policies that are an order.

Queued runs are kept in one heap for each shape. If a run does not fit, no other of its shape does,
so that a decision considers no more runs than there are shapes. A gang waits until all its wanted
members fit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from ...scheduling.model.snapshot import Arrangement, Device, PendingRequest
from ...scheduling.placement.device_pool import DevicePool, Placement, Shape, shape
from ..workload.job_run import Run, whole

Key = tuple[float, ...]
"""Sort key; smaller keys are served first, equal ones in the order of submission."""
Order = Callable[[Run, float], Key]
"""Function that returns the current key of a job: ``order(run, now)``."""
Entry = tuple[Key, int, Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """An order, and whether jobs may pass or preempt others.

    Attributes:
        order: called when a job is queued, and for running ones that another job might preempt. The
            key of a queued job does not change.
        passes: later jobs may start when the next one does not fit.
        preempts: a running job is preempted when a job with a smaller key needs its devices.
        changes: returns when the key of a running job next changes with time, or None for never.
            Without this function a key may get smaller at any time, never larger.
    """

    order: Order
    passes: bool = False
    preempts: bool = False
    changes: Callable[[Run, float], float | None] | None = None


class OrderedQueue:
    """Queued and running runs, and a device pool."""

    def __init__(self, rules: Rules, devices: Sequence[Device], *, restart_cost: float) -> None:
        self._rules = rules
        self._restart_cost = restart_cost
        self._pool = DevicePool(devices, ())
        self._nodes = len({device.node for device in devices})
        self._pending: dict[int, list[Entry]] = {}
        """Heaps of queued runs by shape; a single one if jobs may not pass."""
        self._shapes: dict[Shape, int] = {}
        self._shape_of: dict[int, int] = {}
        self._wants: dict[int, PendingRequest] = {}
        """Requests by run number; gangs with all wanted members."""
        self._stuck: set[int] = set()
        """Shapes that do not fit as long as no device is released."""
        self._running: list[Entry] = []
        """Running runs ordered by key; kept only if the policy preempts."""
        self._keys: dict[int, Key] = {}
        self._changes: list[tuple[float, int, int, Run]] = []
        self.waiting = 0
        self.free = float(len(devices))

    def submit(self, run: Run, now: float) -> None:
        self._wants[run.number] = wanted = whole(run.request)
        number = self._shapes.setdefault(shape(wanted), len(self._shapes))
        self._shape_of[run.number] = number
        self._enqueue(run, now)

    def end(self, run: Run, now: float) -> None:
        self._release(run)
        del self._shape_of[run.number], self._wants[run.number]

    def next_change(self) -> float:
        while self._changes and self._changes[0][3].turn != self._changes[0][2]:
            heappop(self._changes)
        return self._changes[0][0] if self._changes else inf

    def decide(self, now: float) -> Sequence[Run]:
        """Start runs in order until no shape fits, or the next one may not be passed."""
        self._refresh(now)
        started: list[Run] = []
        blocked: set[int] = set()
        while self.waiting:
            queue = self._next_queue(blocked)
            if queue is None:
                break
            key, _, run = self._pending[queue][0]
            placement = self._place(run) or self._preempt(key, run, now)
            if placement is not None:
                self._start(queue, key, placement, now)
                started.append(run)
            elif self._rules.passes:
                blocked.add(queue)
            else:
                break
        return [run for run in started if run.placement is not None]

    def _next_queue(self, blocked: set[int]) -> int | None:
        """Return the queue with the first run of all, except blocked ones; None if all are
        empty."""
        best: int | None = None
        first: Entry | None = None
        for queue, entries in self._pending.items():
            if entries and queue not in blocked and (first is None or entries[0] < first):
                best, first = queue, entries[0]
        return best

    def _enqueue(self, run: Run, now: float) -> None:
        entry = (self._rules.order(run, now), run.number, run)
        queue = self._shape_of[run.number] if self._rules.passes else 0
        heappush(self._pending.setdefault(queue, []), entry)
        self.waiting += 1

    def _place(self, run: Run) -> Placement | None:
        number = self._shape_of[run.number]
        if number in self._stuck:
            return None
        placement = self._pool.take(self._wants[run.number])
        if placement is None:
            self._stuck.add(number)
        return placement

    def _start(self, queue: int, key: Key, placement: Placement, now: float) -> None:
        _, _, run = heappop(self._pending[queue])
        self.waiting -= 1
        self.free -= run.job.size
        run.start(placement, now)
        if self._rules.preempts:
            self._keys[run.number] = key
            insort(self._running, (key, run.number, run))
        self._await_change(run, now)

    def _release(self, run: Run) -> None:
        if run.placement is None:
            return
        self._pool.release(run.placement)
        self.free += run.job.size
        self._stuck.clear()
        if self._rules.preempts:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        entry = (self._keys.pop(run.number), run.number, run)
        del self._running[bisect_left(self._running, entry)]

    # -- preemption -----------------------------------------------------------------------

    def _preempt(self, key: Key, run: Run, now: float) -> Placement | None:
        """Preempt the runs that are last in the order, as few as suffice; None if none suffice."""
        if not self._rules.preempts:
            return None
        victims = self._victims(key, run, now)
        if not victims:
            return None
        for each in victims:
            self._release(each)
            each.stop(now, self._restart_cost)
            self._enqueue(each, now)
        return self._pool.take(self._wants[run.number])

    def _victims(self, key: Key, run: Run, now: float) -> list[Run]:
        """Return the runs on whose devices this one would start; tried on a copy of the pool."""
        after = self._running[bisect_right(self._running, (key, run.number, run)) :]
        if self._rules.changes is None:
            # The keys in the list are those at the start; they may be smaller now.
            fresh = ((self._rules.order(each, now), number, each) for _, number, each in after)
            after = sorted(entry for entry in fresh if entry[:2] > (key, run.number))
        wanted = self._wants[run.number]
        growing = _Growing(self._pool, wanted, self._nodes)
        released: list[Run] = []
        trial: DevicePool | None = None
        for _, _, each in reversed(after):
            released.append(each)
            growing.add(_placement(each))
            if not growing.enough:
                continue
            if trial is None:
                trial = self._pool.copy()
                for earlier in released[:-1]:
                    trial.release(_placement(earlier))
            trial.release(_placement(each))
            chosen = trial.take(wanted)
            if chosen is not None:
                needed = set(chosen.devices)
                return [each for each in released if needed.intersection(_placement(each).devices)]
        return []

    # -- orders that change by themselves -------------------------------------------------

    def _await_change(self, run: Run, now: float) -> None:
        at = self._rules.changes(run, now) if self._rules.changes else None
        if at is not None:
            heappush(self._changes, (at, run.number, run.turn, run))

    def _refresh(self, now: float) -> None:
        """Update the keys that have changed by now."""
        while self.next_change() <= now:
            run = heappop(self._changes)[3]
            if self._rules.preempts:
                self._forget(run)
                self._keys[run.number] = key = self._rules.order(run, now)
                insort(self._running, (key, run.number, run))
            self._await_change(run, now)


class _Growing:
    """Counts released devices, to tell whether a run might fit before a placement is tried."""

    def __init__(self, pool: DevicePool, wanted: PendingRequest, nodes: int) -> None:
        self._pool = pool
        self._model = wanted.model
        gang = wanted.gang
        self._member = gang[0].devices if gang else wanted.devices
        self._spread = wanted.arrangement is Arrangement.SPREAD
        self._lacking = gang[0].minimum if gang else 1
        self._more: dict[int, int] = {}
        self._share = wanted.share is not None
        if gang:
            for node in range(nodes):
                self._lacking -= self._members(pool.free_on(node, self._model))

    @property
    def enough(self) -> bool:
        return self._share or self._lacking <= 0

    def add(self, placement: Placement) -> None:
        for node, count in self._pool.gains(placement, self._model).items():
            before = self._pool.free_on(node, self._model) + self._more.get(node, 0)
            self._lacking -= self._members(before + count) - self._members(before)
            self._more[node] = self._more.get(node, 0) + count

    def _members(self, free: int) -> int:
        """Return how many members of the first role fit on a node with ``free`` devices."""
        return min(free // self._member, 1) if self._spread else free // self._member


def _placement(run: Run) -> Placement:
    assert run.placement is not None, f"{run.job.id} does not run"
    return run.placement
