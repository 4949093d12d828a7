"""Bounds of the wait time: no request starves.

Why the bounds hold, whatever the order is:

- The pool is never empty while a request waits that could start in an empty pool, because the
  first one would start in it. The wait is at most the sum of the times in which other requests
  hold devices: their time limits, and the work before each preemption. A request is preempted no
  more often than there are other requests.
- If all requests need one device and no limit binds, all devices are busy while a request waits
  (Graham, "Bounds for certain multiprocessing anomalies", 1966). The wait is then at most the
  device-seconds of the other requests, divided by the number of devices.
- In an endless stream the other requests are those that may still go before it. Those of the same
  owner are submitted within its own device-seconds over ``AGEING``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.learned_order import LearnedOrder
from carrel.hub.scheduling.model.plan import Stop
from carrel.hub.scheduling.model.snapshot import Allocation, PendingRequest, Snapshot
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.cycle_state import CycleState
from carrel.hub.scheduling.queue.order import in_order
from carrel.hub.scheduling.queue.queues import AGEING
from carrel.hub.scheduling.queue.running_set import allocation_of

from .. import rich
from ..outcomes import back
from ..values import NOW, group, node, pending

MINUTE = 60.0
offsets = st.integers(0, 30).map(lambda n: n * 10 * MINUTE)


@dataclass(kw_only=True)
class Schedule:
    """The result of a stream of requests that run to their time limits, by request id.

    ``waits``: seconds until the first start; ``ran``: seconds on devices; ``over``: ended requests.
    """

    waits: dict[str, float] = field(default_factory=dict)
    ran: Counter[str] = field(default_factory=Counter)
    over: set[str] = field(default_factory=set)
    stops: Counter[str] = field(default_factory=Counter)


def schedule(snapshot: Snapshot, coming: Iterable[PendingRequest]) -> Schedule:
    """Decide until all requests have ended. Victims leave at once, and are queued again with their
    age and without saved work."""
    state, now, story = snapshot, NOW, Schedule()
    later = sorted(coming, key=lambda each: (each.submitted_at, each.id))
    known = {each.id: each for each in later}
    most = len(later) + len(snapshot.allocations)
    while True:
        here = [each for each in later if each.submitted_at <= now]
        later = later[len(here) :]
        state = replace(state, pending=(*state.pending, *here))
        plan = decide(state, now)
        stops = {stop.request_id: stop for stop in plan.stops}
        by_id = {request.id: request for request in state.pending}
        started_with: list[Allocation] = []
        for start in plan.starts:
            request = by_id.pop(start.request_id)
            story.waits.setdefault(request.id, now - request.submitted_at)
            placed = Placement(devices=start.devices, share=request.share)
            started_with.append(allocation_of(request, placed, now=now))
        stay = tuple(each for each in state.allocations if each.request_id not in stops)
        again = (
            again_of(each, stops[each.request_id], known.get(each.request_id))
            for each in state.allocations
            if each.request_id in stops
        )
        state = replace(
            state, pending=(*by_id.values(), *again), allocations=(*stay, *started_with)
        )
        story.stops.update(stops.keys())
        assert max(story.stops.values(), default=0) <= most, "it never ends"
        events = [each.until for each in state.allocations] + [each.submitted_at for each in later]
        if stops:
            continue
        if not events:
            return story
        before, now = now, max(now, min(events))
        story.ran.update({e.request_id: now - before for e in state.allocations if e.devices})
        story.over |= {each.request_id for each in state.allocations if each.until <= now}
        state = replace(
            state, allocations=tuple(each for each in state.allocations if each.until > now)
        )


def again_of(allocation: Allocation, stop: Stop, request: PendingRequest | None) -> PendingRequest:
    """Return a victim as a queued request: as it was submitted, if that is known."""
    if request is None:
        return back(allocation, stop)
    other, none = stop.for_request, ""
    return replace(
        request,
        moved_for=other if stop.relocated else none,
        stopped_for=none if stop.relocated else other,
    )


def starts_alone(request: PendingRequest, snapshot: Snapshot) -> bool:
    empty = replace(snapshot, allocations=(), pending=(request,))
    return bool(decide(empty, request.submitted_at).starts)


@st.composite
def loads(draw: st.DrawFn) -> tuple[Snapshot, tuple[PendingRequest, ...]]:
    """Draw a pool with running work, and the submissions of the next five hours."""
    snapshot = replace(draw(rich.snapshots()), reserved=(), budgets=())
    coming = tuple(
        replace(each, submitted_at=NOW + draw(offsets), deadline=None) for each in snapshot.pending
    )
    return replace(snapshot, pending=()), coming


@given(loads())
def test_a_wait_is_no_longer_than_the_time_of_all_others(
    load: tuple[Snapshot, tuple[PendingRequest, ...]],
) -> None:
    snapshot, coming = load
    story = schedule(snapshot, coming)
    for request in coming:
        if starts_alone(request, snapshot):
            assert request.id in story.over
            others = sum(story.ran.values()) - story.ran[request.id]
            assert story.waits[request.id] <= others + 1e-6


@st.composite
def streams(draw: st.DrawFn) -> tuple[Snapshot, tuple[PendingRequest, ...]]:
    """Draw requests for one device each, which no limit holds."""
    groups = (group("cs101"), group("math"), group("lab", parent="math"))
    coming = tuple(
        replace(
            pending(
                f"r{number}",
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([each.name for each in groups])),
                seconds=draw(rich.minutes),
            ),
            submitted_at=NOW + draw(offsets),
            expected=draw(rich.maybe_minutes),
        )
        for number in range(draw(st.integers(1, 20)))
    )
    pool = Snapshot(devices=node("a", draw(st.integers(1, 4))), groups=groups)
    return replace(pool, learned_order=draw(rich.maybe_learned)), coming


@given(streams())
def test_one_device_each_waits_for_the_work_of_the_others_over_all_devices(
    load: tuple[Snapshot, tuple[PendingRequest, ...]],
) -> None:
    snapshot, coming = load
    found = schedule(snapshot, coming).waits
    work = sum(each.seconds for each in coming)
    for request in coming:
        assert found[request.id] <= (work - request.seconds) / len(snapshot.devices)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[PendingRequest, PendingRequest]:
    """Draw two requests of one owner, the older one first."""
    devices, later = draw(st.integers(1, 4)), draw(st.floats(0, 30 * 86400.0))
    old = replace(
        pending("old", devices, owner="ada", seconds=draw(rich.minutes)), submitted_at=NOW
    )
    fewer = max(1, devices - draw(st.integers(0, 3)))
    new = replace(
        pending("new", fewer, owner="ada", seconds=draw(rich.minutes)), submitted_at=NOW + later
    )
    return old, new


@given(pairs(), rich.maybe_learned)
def test_a_much_later_request_passes_none_of_the_same_owner(
    two: tuple[PendingRequest, PendingRequest], learned: LearnedOrder | None
) -> None:
    old, new = two
    later = new.submitted_at - old.submitted_at
    queue = Snapshot(
        devices=node("a", 4), groups=(group(),), pending=(new, old), learned_order=learned
    )
    first, _ = in_order(queue, CycleState(queue, NOW + later))
    longer, least = old.devices * old.seconds, new.devices * new.seconds
    if later > longer / AGEING + 1:
        assert first.id == "old"
    if learned is None and least + AGEING * (later + 1) < longer:
        assert first.id == "new"
