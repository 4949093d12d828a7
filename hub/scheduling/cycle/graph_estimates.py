"""Expected ends of jobs of which some wait for others, on the present queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf

from ..model.snapshot import Allocation, PendingRequest, Snapshot, without_back_off
from ..queue.cycle_state import CycleState
from ..queue.order import in_order
from ..queue.running_set import planned_end
from .dispatch import dispatch
from .start_estimates import FIRST_PAGE, as_expected, to_its_limit

_MOST_STEPS = 200
"""Number of ends after which the remaining ones stay unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphJob:
    """A job of a graph that has not ended.

    Attributes:
        after: ids of the jobs that have to end before it, of this graph.
        seconds: how long it will run, of which what earlier attempts saved is not repeated; of a
            running one: how long it will still run.
    """

    after: frozenset[str] = frozenset()
    seconds: float


def graph_ends(
    snapshot: Snapshot, jobs: Mapping[str, GraphJob], now: float, *, others_to_limits: bool = False
) -> Mapping[str, float]:
    """Return the expected end of each job, by request id; those that never end are missing.

    The time is advanced from one end to the next, and the queue is dispatched each time, as for the
    estimates of starts. A job enters the queue behind the other requests once the jobs before it
    have ended, whatever its place will be. The first requests of the queue are regarded, and no
    request that may be submitted later.

    Args:
        others_to_limits: running and queued requests outside of the graph use their whole time
            limits, and do not end when they are expected to.
    """
    return _GraphSimulation(snapshot, jobs, now, others_to_limits).ends()


class _GraphSimulation:
    """The queue from now on, as long as jobs of the graph have not ended."""

    def __init__(
        self, snapshot: Snapshot, jobs: Mapping[str, GraphJob], now: float, to_limits: bool
    ) -> None:
        self._jobs, self._to_limits = jobs, to_limits
        state = CycleState(snapshot, now)
        self._state = state.with_ends(self._running(state.running.allocations.values(), now))
        running = self._state.running.allocations
        self._ends = [(planned_end(each), each.request_id) for each in running.values()]
        heapify(self._ends)
        pending = {each.id: each for each in snapshot.pending}
        self._waiting = {
            name: pending[name] for name in jobs if name in pending and jobs[name].after
        }
        ready = without_back_off(snapshot, now)
        ready = replace(
            ready, pending=tuple(each for each in ready.pending if each.id not in self._waiting)
        )
        order = in_order(ready, state)
        self._queue = [
            self._expected(each)
            for place, each in enumerate(order)
            if place < FIRST_PAGE or each.id in jobs
        ]
        self._found: dict[str, float] = {}

    def _running(self, allocations: Iterable[Allocation], now: float) -> list[Allocation]:
        others = to_its_limit if self._to_limits else as_expected
        return [
            replace(each, until=now + self._jobs[each.request_id].seconds, expected=None)
            if each.request_id in self._jobs
            else others(each, now)
            for each in allocations
        ]

    def _expected(self, request: PendingRequest) -> PendingRequest:
        if request.id in self._jobs:
            done = 0.0 if self._to_limits else request.done
            return replace(request, expected=self._jobs[request.id].seconds, done=done)
        return replace(request, expected=None, done=0.0) if self._to_limits else request

    def ends(self) -> Mapping[str, float]:
        known = {name for _, name in self._ends} | {each.id for each in self._queue}
        left = self._jobs.keys() & (known | self._waiting.keys())
        self._dispatch()
        for _ in range(_MOST_STEPS):
            edge = self._state.next_reservation_edge()
            at = min(self._ends[0][0], edge) if self._ends else edge
            if at == inf or self._found.keys() >= left:
                break
            self._state.advance(at)
            for name in self._ended(at):
                self._state.end(name)
                if name in self._jobs:
                    self._found[name] = at
            self._release(at)
            self._dispatch()
        return self._found

    def _ended(self, at: float) -> Iterator[str]:
        while self._ends and self._ends[0][0] <= at:
            yield heappop(self._ends)[1]

    def _release(self, at: float) -> None:
        """Add the jobs to the queue whose last job before them has ended."""
        for name in list(self._waiting):
            # A job before it that is not part of the simulation has ended already.
            if self._jobs[name].after & self._jobs.keys() <= self._found.keys():
                request = replace(self._waiting.pop(name), not_before=None, submitted_at=at)
                self._queue.append(self._expected(request))

    def _dispatch(self) -> None:
        started, held = dispatch(self._queue, self._state)
        self._queue = [each.request for each in held]
        for each in started:
            heappush(self._ends, (planned_end(each.allocation), each.request.id))
