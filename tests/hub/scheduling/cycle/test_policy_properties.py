"""Properties of all plans with lending, gangs, shares and reservations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate, product
from math import fsum, inf

import pytest
from hypothesis import HealthCheck, assume, given

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Arrangement,
    Device,
    GangRole,
    Kind,
    PendingRequest,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import DevicePool, Placement
from carrel.hub.scheduling.placement.gangs import forms
from carrel.hub.scheduling.queue.cycle_state import CycleState
from carrel.hub.scheduling.queue.order import in_order
from carrel.hub.scheduling.queue.running_set import allocation_of, expected_end, expected_seconds

from .. import rich
from ..outcomes import (
    after,
    back,
    chain_of,
    counts_as_guaranteed,
    is_below,
    once_left,
    started,
    weight,
)
from ..values import NOW, pending

Check = Callable[[Snapshot], None]
SELDOM = (HealthCheck.filter_too_much, HealthCheck.too_slow)


# -- rules 1 and 2 of the design --------------------------------------------------------------


def check_devices(snapshot: Snapshot) -> None:
    """Check that a device has one holder, or shares that add up to at most the device."""
    known = {device.id: device for device in snapshot.devices}
    held: dict[str, list[Allocation]] = defaultdict(list)
    for allocation in after(snapshot, decide(snapshot, NOW)).allocations:
        assert allocation.share is None or len(allocation.devices) == 1
        for device in allocation.devices:
            held[device].append(allocation)
    for device, here in held.items():
        shares = [each.share for each in here if each.share is not None]
        assert len(here) == 1 or len(shares) == len(here)
        assert fsum(each.compute for each in shares) <= 1
        assert sum(each.memory_bytes for each in shares) <= known[device].memory_bytes


def check_quota(snapshot: Snapshot) -> None:
    """Check that no start exceeds a limit of a group or user; allocations above one may stay."""
    plan = decide(snapshot, NOW)
    groups = {each.name: each for each in snapshot.groups}
    models = {device.id: device.model for device in snapshot.devices}
    held = after(snapshot, plan).allocations
    for start in started(snapshot, plan):
        chain = chain_of(start.group, groups)
        assert chain
        for above in chain if start.devices else ():
            inside = [each for each in held if is_below(each.group, above.name, groups)]
            own = [each for each in inside if each.owner == start.owner]
            assert sum(map(weight, inside)) <= above.max_devices + 1e-9
            if above.borrowing is not None:
                most = counts_as_guaranteed(above.name, groups) + above.borrowing
                assert sum(map(weight, inside)) <= most + 1e-9
            assert sum(map(weight, own)) <= above.max_devices_per_user + 1e-9
            sessions = [each for each in own if each.kind is Kind.SESSION and each.devices]
            if above.max_sessions is not None and start.kind is Kind.SESSION:
                assert len(sessions) <= above.max_sessions
            assert above.models is None or {models[each] for each in start.devices} <= above.models


def check_budgets(snapshot: Snapshot) -> None:
    """Check that all budgets above a request have a balance when it starts."""
    groups = {each.name: each for each in snapshot.groups}
    left = {each.group: each.budget - each.used - each.running for each in snapshot.budgets}
    for start in started(snapshot, decide(snapshot, NOW)):
        for above in chain_of(start.group, groups) if start.devices else ():
            if above.name in left:
                assert left[above.name] > 0
                left[above.name] -= weight(start) * (start.until - NOW)


# -- the queue --------------------------------------------------------------------------------


def check_gangs(snapshot: Snapshot) -> None:
    """Check that a gang has between its minimum and maximum members of each role, on one model."""
    known = {device.id: device for device in snapshot.devices}
    by_id = {request.id: request for request in snapshot.pending}
    for start in decide(snapshot, NOW).starts:
        request = by_id[start.request_id]
        if request.gang:
            got = [known[each] for each in start.devices]
            assert len({each.model for each in got}) == 1
            assert members(request, got)


def members(request: PendingRequest, got: list[Device]) -> tuple[tuple[GangRole, ...], ...]:
    """Return the roles with every number of members that these devices allow, where a member is
    within one node, and spread members are on different nodes."""
    found = []
    for counts in product(*(range(role.minimum, role.wanted + 1) for role in request.gang)):
        sizes = [
            role.devices
            for role, count in zip(request.gang, counts, strict=True)
            for _ in range(count)
        ]
        if sum(sizes) != len(got):
            continue
        ends = list(accumulate(sizes))
        nodes = [
            {each.node for each in got[end - size : end]}
            for size, end in zip(sizes, ends, strict=True)
        ]
        spread = request.arrangement is Arrangement.SPREAD
        if all(len(each) == 1 for each in nodes) and (
            not spread or len(set().union(*nodes)) == len(nodes)
        ):
            pairs = zip(request.gang, counts, strict=True)
            found.append(tuple(replace(role, wanted=count, minimum=count) for role, count in pairs))
    return tuple(found)


def check_a_packed_gang_lies_together(snapshot: Snapshot) -> None:
    """Check that a gang alone in the queue is on one node or one switch, if it fits there."""
    known = {device.id: device for device in snapshot.devices}
    for request in snapshot.pending:
        if not request.gang or request.arrangement is Arrangement.SPREAD:
            continue
        for start in decide(replace(snapshot, pending=(request,)), NOW).starts:
            got = [known[each] for each in start.devices]
            alike = [each for each in snapshot.devices if each.model == got[0].model]
            if DevicePool(alike, snapshot.allocations).fits(pending("as many", len(got))):
                assert len({each.node for each in got}) == 1
            elif len({each.node for each in got}) > 1:
                inside = [
                    DevicePool(
                        [each for each in alike if each.switch == name], snapshot.allocations
                    )
                    for name in {each.switch for each in alike} - {""}
                ]
                for roles in members(request, got):
                    if any(pool.fits(replace(request, gang=roles)) for pool in inside):
                        assert len({each.switch for each in got}) == 1


def check_every_request_is_planned(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)
    planned = [start.request_id for start in plan.starts]
    planned += [wait.request_id for wait in plan.waits]
    assert sorted(planned) == sorted(request.id for request in snapshot.pending)
    known = {allocation.request_id for allocation in snapshot.allocations}
    assert {stop.request_id for stop in plan.stops} <= known


def check_a_preemptor_waits_for_its_victims(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)
    reclaiming = {wait.request_id for wait in plan.waits if wait.reason is Reason.RECLAIMING}
    assert {stop.for_request for stop in plan.stops} <= reclaiming


def check_preemptions_terminate(snapshot: Snapshot) -> None:
    """Check that preemptions end if victims leave at once and are queued again, that a preemptor
    starts after each unless devices are reserved, and that relocated work runs again."""
    stay = tuple(each for each in snapshot.allocations if not each.leaving)
    snapshot = replace(snapshot, allocations=stay)
    kept = snapshot.reserved or any(each.lending is not None for each in snapshot.groups)
    turns, moved = 0, set[str]()
    plan = decide(snapshot, NOW)
    while plan.stops or plan.starts:
        gone = {stop.request_id: stop for stop in plan.stops}
        moved |= {name for name, stop in gone.items() if stop.relocated}
        again = tuple(
            back(each, gone[each.request_id])
            for each in snapshot.allocations
            if each.request_id in gone
        )
        left = once_left(after(snapshot, plan), plan)
        snapshot = replace(left, pending=(*left.pending, *again))
        plan = decide(snapshot, NOW)
        assert kept or not gone or {start.request_id for start in plan.starts} - gone.keys()
        turns += 1
        assert turns <= 2 * (len(snapshot.pending) + len(snapshot.allocations)), "it never ends"
    assert moved <= {each.request_id for each in after(snapshot, plan).allocations}


KEPT = (Reason.GUARANTEE, Reason.RESERVATION)


def check_work_is_conserved(snapshot: Snapshot) -> None:
    """Check that a request which could start alone, and would end before any other work and the
    next reservation edge, has started."""
    # Exceptions: devices set aside for preemptors and relocated work, and requests held for
    # guarantees or reservations beside shares. Those count wholly free devices: a share that fills
    # one may let a request ahead, or another share, start only in the next cycle.
    plan = decide(snapshot, NOW)
    state = after(snapshot, plan)
    in_parts = any(each.share for each in started(snapshot, plan))
    parts = {each.id for each in snapshot.pending if in_parts or each.share}
    kept = {wait.request_id for wait in plan.waits if wait.reason in KEPT} & parts
    ends = [expected_end(each, NOW) for each in state.allocations if each.devices]
    edges = [edge for each in state.reserved for edge in (each.starts_at, each.ends_at)]
    first = min((*ends, *(edge for edge in edges if edge > NOW)), default=inf)
    asked = {stop.request_id for stop in plan.stops if not stop.relocated}
    state = replace(
        state,
        allocations=tuple(
            replace(each, leaving=each.leaving or each.request_id in asked)
            for each in state.allocations
        ),
    )
    reclaiming = {w.request_id for w in plan.waits if w.reason is Reason.RECLAIMING}
    asking = [each for each in state.pending if each.id in reclaiming]
    for request in state.pending:
        if request.id not in kept and NOW + expected_seconds(request) <= first:
            others = (each for each in asking if each.id != request.id)
            alone = replace(state, pending=(request, *others))
            assert request.id not in {start.request_id for start in decide(alone, NOW).starts}


def check_the_head_is_not_delayed(snapshot: Snapshot) -> None:
    """Check that the head fits as early with the requests that started behind it as without, under
    reservations and guarantees; an elastic gang possibly with fewer members."""
    plan = decide(snapshot, NOW)
    while plan.stops:
        # Where preemptors will run is known when their victims have left.
        snapshot = once_left(after(snapshot, plan), plan)
        plan = decide(snapshot, NOW)
    heads = [w.request_id for w in plan.waits if w.reason is Reason.NO_FREE_DEVICE]
    assume(heads)
    queue = [request.id for request in in_order(snapshot, CycleState(snapshot, NOW))]
    head = next(request for request in snapshot.pending if request.id == heads[0])
    ahead = [
        each
        for each in started(snapshot, plan)
        if queue.index(each.request_id) < queue.index(head.id)
    ]
    before = (*snapshot.allocations, *ahead)
    behind = (*snapshot.allocations, *started(snapshot, plan))
    assert _fits_at(head, snapshot, behind) <= _fits_at(head, snapshot, before)
    outlast = tuple(
        each
        for each in behind
        if each in before or expected_end(each, NOW) > _fits_at(head, snapshot, before)
    )
    state = CycleState(replace(snapshot, allocations=before), NOW)
    if not state.has_reserved and state.hold_reason(head) is None:
        assert CycleState(replace(snapshot, allocations=outlast), NOW).hold_reason(head) is None


def _fits_at(
    request: PendingRequest, snapshot: Snapshot, allocations: Iterable[Allocation]
) -> float:
    ends = {each: expected_end(each, NOW) for each in allocations}
    edges = {edge for each in snapshot.reserved for edge in (each.starts_at, each.ends_at)}
    for at in sorted({NOW, *ends.values(), *(edge for edge in edges if edge > NOW)}):
        left = tuple(each for each, end in ends.items() if end > at)
        state = CycleState(replace(snapshot, allocations=left), at)
        for each in forms(request):
            if (
                state.keeps_reserved(each)
                and not (state.has_reserved and state.hold_reason(each))
                and any(map(state.pool.fits, state.variants(each)))
            ):
                return at
    return inf


def check_nothing_waits_for_ever(snapshot: Snapshot) -> None:
    """Run everything to its end: requests that are left could not start in an empty pool either."""
    state = replace(snapshot, reserved=(), budgets=())
    now, turns = NOW, 0
    while True:
        plan = decide(state, now)
        by_id = {request.id: request for request in state.pending}
        started_with = [
            allocation_of(
                by_id[start.request_id],
                Placement(devices=start.devices, share=by_id[start.request_id].share),
                now=now,
            )
            for start in plan.starts
        ]
        left = {start.request_id for start in plan.starts}
        allocations = (*state.allocations, *started_with)
        state = replace(state, pending=tuple(w for w in state.pending if w.id not in left))
        if not allocations:
            break
        now = max(now, min(allocation.until for allocation in allocations))
        state = replace(state, allocations=tuple(each for each in allocations if each.until > now))
        turns += 1
        assert turns <= 2 * (len(snapshot.pending) + len(snapshot.allocations)), "it never ends"
    for request in state.pending:
        assert not decide(replace(state, pending=(request,)), now).starts


CHECKS = [
    check_devices,
    check_quota,
    check_budgets,
    check_gangs,
    check_a_packed_gang_lies_together,
    check_every_request_is_planned,
    check_a_preemptor_waits_for_its_victims,
    check_preemptions_terminate,
    check_work_is_conserved,
    check_the_head_is_not_delayed,
    check_nothing_waits_for_ever,
]
NAMES = [check.__name__.removeprefix("check_") for check in CHECKS]


@pytest.mark.hypothesis
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_every_plan(check: Check) -> None:
    given(rich.snapshots())(check)()


@pytest.mark.hypothesis
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_every_plan_with_fragmented_free_devices(check: Check) -> None:
    given(rich.in_pieces())(check)()
