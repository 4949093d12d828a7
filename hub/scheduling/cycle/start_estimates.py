"""Expected starts of the requests on the first page of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import inf

from ..model.plan import Estimate, Reason
from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import Shape, shape
from ..queue.cycle_state import CycleState
from ..queue.running_set import expected_end, planned_end
from ..quota.headroom import Key
from .dispatch import DispatchHold, dispatch

FIRST_PAGE = 20
"""Number of queued requests with an estimate: those that users see first."""
_END_EFFORT, _DISPATCH_EFFORT = 3, 5
"""Effort of an end, and of a dispatch in addition to its requests."""


class Effort:
    """Computation budget of estimates; when it is spent, remaining starts stay unknown.

    One unit is one request that is served; an end or a dispatch costs a few units. Counting steps
    instead of seconds makes the result deterministic.
    """

    def __init__(self, left: float = inf) -> None:
        self.left = left

    def spend(self, units: float) -> None:
        self.left -= units


def estimates(
    page: Sequence[PendingRequest], state: CycleState, until: str = "", effort: Effort | None = None
) -> Mapping[str, Estimate]:
    """Return the expected start by request id; a request that never starts has none.

    It is computed twice: with all work ending when it is expected to, and with all work using its
    whole time limit. The estimate is the interval between the two; where only limits are known,
    both are the same.

    ``page`` is the beginning of the queue in the given state. It keeps its order, and requests
    behind it are ignored: they could use only devices that limits keep from those on the page.

    ``until``: a request id; the computation ends when its start is known.
    ``effort``: when it is spent, requests without a known start have no estimate.
    """
    effort = Effort() if effort is None else effort
    running = state.running.allocations.values()
    settled = [as_expected(allocation, state.now) for allocation in running]
    limits = [to_its_limit(allocation, state.now) for allocation in running]
    soon = late = _forecast(page, state.with_ends(settled), until, effort)
    if until and until not in soon:
        return {}
    if limits != settled or any(request.expected is not None for request in page):
        unknown = [replace(request, expected=None, done=0.0) for request in page]
        late = _forecast(unknown, state.with_ends(limits), until, effort)
    return {
        name: Estimate(at=min(soon[name], late[name]), latest=max(soon[name], late[name]))
        for name in soon.keys() & late.keys()
    }


def as_expected(allocation: Allocation, now: float) -> Allocation:
    """Return an allocation that ends when it is expected to."""
    return _leaving(allocation, now) or _ending(allocation, expected_end(allocation, now))


def to_its_limit(allocation: Allocation, now: float) -> Allocation:
    """Return an allocation that uses its whole time limit."""
    return _leaving(allocation, now) or _ending(allocation, max(allocation.until, now))


def _leaving(allocation: Allocation, now: float) -> Allocation | None:
    """Return an allocation that is leaving, until the end of its grace period; otherwise None."""
    if not allocation.leaving:
        return None
    at = now if allocation.leaves_at is None else max(now, allocation.leaves_at)
    return replace(allocation, until=at, expected=None, leaving=False)


def _ending(allocation: Allocation, at: float) -> Allocation:
    if allocation.until == at and allocation.expected is None:
        return allocation
    return replace(allocation, until=at, expected=None)


def _forecast(
    page: Sequence[PendingRequest], state: CycleState, until: str, effort: Effort
) -> Mapping[str, float]:
    """Advance the time from one end to the next, and dispatch the page each time."""
    found: dict[str, float] = {}
    running = state.running.allocations.values()
    ends = [(planned_end(allocation), allocation.request_id) for allocation in running]
    heapify(ends)
    effort.spend(len(page) + _DISPATCH_EFFORT)
    _, held = dispatch(page, state)
    wanted = _Awaited(held, state)
    while held and until not in found and effort.left > 0:
        edge = state.next_reservation_edge()
        at = min(ends[0][0], edge) if ends else edge
        if at == inf:
            break
        state.advance(at)
        ended = [state.end(request_id) for request_id in _ended(ends, at)]
        effort.spend(_END_EFFORT * len(ended))
        if at < edge and not wanted.may_be_available(ended):
            continue
        effort.spend(len(held) + _DISPATCH_EFFORT)
        started, held = dispatch((each.request for each in held), state)
        wanted = _Awaited(held, state)
        for each in started:
            found[each.request.id] = at
            heappush(ends, (planned_end(each.allocation), each.request.id))
    return found


def _ended(ends: list[tuple[float, str]], at: float) -> Iterator[str]:
    while ends and ends[0][0] <= at:
        yield heappop(ends)[1]


class _Awaited:
    """The limits and devices that the held requests wait for.

    Another dispatch can only help once there is headroom under one of these limits, or devices
    that fit.
    """

    def __init__(self, held: Iterable[DispatchHold], state: CycleState) -> None:
        self._state = state
        self._limits: set[Key] = set()
        self._forms: dict[Shape, PendingRequest] = {}
        for each in held:
            if each.limit is not None:
                self._limits.add(each.limit)
            elif each.reason is Reason.BUDGET:
                self._limits.add((each.detail, None))
            elif each.reason is Reason.SESSIONS:
                self._limits.add((each.detail, each.request.owner))
            else:
                self._forms |= {shape(form): form for form in state.variants(each.request)}

    def may_be_available(self, ended: Iterable[Allocation]) -> bool:
        """Return whether headroom or devices may be available, now that these have ended."""
        known, limits = self._state.tree.ancestry, self._limits
        for each in ended:
            for group in known(each.group):
                if (group.name, None) in limits or (group.name, each.owner) in limits:
                    return True
        return any(map(self._state.pool.fits, self._forms.values()))
