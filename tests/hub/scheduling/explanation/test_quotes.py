"""A quote for a request equals the decision after its submission."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.explanation.quotes import blocked_by, quotes
from carrel.hub.scheduling.model.plan import Reason, Wait
from carrel.hub.scheduling.model.snapshot import Allocation, PendingRequest, PriorityClass, Snapshot
from carrel.hub.scheduling.queue.cycle_state import CycleState
from carrel.hub.scheduling.queue.order import in_order

from ..strategies import GROUPS, OWNERS, SIZES, snapshots
from ..values import HOUR, NOW, allocation, group, node, pending


def decided(snapshot: Snapshot, request: PendingRequest) -> Wait:
    """Return the reference: ``decide`` on a copy with the request, and none behind it."""
    longer = replace(snapshot, pending=(*snapshot.pending, request))
    queue = in_order(longer, CycleState(longer, NOW))
    plan = decide(replace(snapshot, pending=queue[: queue.index(request) + 1]), NOW)
    starts = [start for start in plan.starts if start.request_id == request.id]
    if starts:
        return Wait(request_id=request.id, place=0, reason=Reason.STARTING)
    return next(wait for wait in plan.waits if wait.request_id == request.id)


HYPOTHETICAL = st.builds(
    pending,
    st.just("~0"),
    st.sampled_from(SIZES),
    age=st.sampled_from([-1.0, -1.0, 3.0]),
    owner=st.sampled_from(OWNERS),
    group=st.sampled_from(GROUPS),
    priority=st.sampled_from(PriorityClass),
)


@given(snapshot=snapshots(), asked=st.lists(HYPOTHETICAL, min_size=1, max_size=4))
def test_a_quote_is_what_would_be_decided(snapshot: Snapshot, asked: list[PendingRequest]) -> None:
    assert quotes(snapshot, asked, NOW) == tuple(decided(snapshot, each) for each in asked)


@given(snapshot=snapshots(), asked=HYPOTHETICAL)
def test_those_behind_change_nothing_but_the_estimate(
    snapshot: Snapshot, asked: PendingRequest
) -> None:
    plan = decide(replace(snapshot, pending=(*snapshot.pending, asked)), NOW)
    (quote,) = quotes(snapshot, [asked], NOW)
    found = [wait for wait in plan.waits if wait.request_id == asked.id]
    starts = Wait(request_id=asked.id, place=0, reason=Reason.STARTING)
    assert [quote._replace(estimate=None)] == [
        wait._replace(estimate=None) for wait in found or [starts]
    ]


def pool(*held: Allocation, waits: tuple[PendingRequest, ...] = ()) -> Snapshot:
    return Snapshot(devices=node("a", 2), groups=(group(),), pending=waits, allocations=held)


ADAS = allocation("s-a", "a0", owner="ada")
EVES = allocation("s-x", "a1", owner="eve")


def test_an_empty_queue_serves_no_request() -> None:
    assert blocked_by(pool(ADAS), "s-a", NOW) is None


def test_a_request_that_waits_for_a_device_is_blocked() -> None:
    waits = (pending("j-b", owner="bob", age=2), pending("j-c", owner="eve", age=1))
    assert blocked_by(pool(ADAS, EVES, waits=waits), "s-a", NOW) == waits[0]


def test_a_request_that_waits_for_two_devices_is_blocked() -> None:
    waits = (pending("j-b", 2, owner="bob"),)
    later = allocation("s-a", "a0", owner="ada", ends_in=2 * HOUR)
    busy = pool(later, EVES, waits=waits)
    assert blocked_by(busy, "s-a", NOW) == waits[0]
    assert blocked_by(busy, "s-x", NOW) is None, "bob waits for the other one anyway"


def test_a_request_that_waits_for_something_else_is_not_blocked() -> None:
    on_cpu = pool(ADAS, waits=(pending("j-b", 0, owner="bob", group="nowhere"),))
    own = pool(ADAS, EVES, waits=(pending("j-b", owner="ada"),))
    assert blocked_by(on_cpu, "s-a", NOW) is None
    assert blocked_by(own, "s-a", NOW) is None, "its owner's own requests"
    assert blocked_by(own, "s-unknown", NOW) is None
