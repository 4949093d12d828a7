"""What holds for every plan, whatever meets in it: lending, gangs, shares, reservations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate, product
from math import fsum, inf
from random import Random
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from carrel.hub.scheduling.books import Books
from carrel.hub.scheduling.cycle import decide, in_order
from carrel.hub.scheduling.model import (
    Arrangement,
    Device,
    Group,
    Holding,
    Kind,
    Left,
    Role,
    Snapshot,
    Waiting,
)
from carrel.hub.scheduling.placement import Placement, Pool
from carrel.hub.scheduling.plan import Plan, Reason, Stop
from carrel.hub.scheduling.running import expected_end, holding_of, span

from . import rich
from .values import NOW, group, node, waiting

Check = Callable[[Snapshot], None]
T = TypeVar("T")
SELDOM = (HealthCheck.filter_too_much, HealthCheck.too_slow)


def started(snapshot: Snapshot, plan: Plan) -> list[Holding]:
    by_id = {request.id: request for request in snapshot.waiting}
    return [
        holding_of(
            by_id[start.request_id],
            Placement(devices=start.devices, share=by_id[start.request_id].share),
            now=NOW,
        )
        for start in plan.starts
    ]


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    begun = started(snapshot, plan)
    names = {each.request_id for each in begun}
    return replace(
        snapshot,
        holdings=(*snapshot.holdings, *begun),
        waiting=tuple(each for each in snapshot.waiting if each.id not in names),
        budgets=tuple(charged(each, begun, snapshot.groups) for each in snapshot.budgets),
    )


def once_left(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Those that were asked back are gone for good."""
    gone = {stop.request_id for stop in plan.stops}
    stay = tuple(each for each in snapshot.holdings if each.request_id not in gone)
    return replace(snapshot, holdings=stay)


def charged(left: Left, begun: Iterable[Holding], groups: Iterable[Group]) -> Left:
    by_name = {each.name: each for each in groups}
    more = sum(
        weight(each) * (each.until - NOW)
        for each in begun
        if _below(each.group, left.group, by_name)
    )
    return replace(left, running=left.running + more)


def weight(holding: Holding) -> float:
    return holding.share.compute if holding.share else len(holding.devices)


# -- rules 1 and 2 of the design --------------------------------------------------------------


def check_devices(snapshot: Snapshot) -> None:
    """A device is held by one as a whole, or in parts that add up to no more than it."""
    known = {device.id: device for device in snapshot.devices}
    held: dict[str, list[Holding]] = defaultdict(list)
    for holding in after(snapshot, decide(snapshot, NOW)).holdings:
        assert holding.share is None or len(holding.devices) == 1
        for device in holding.devices:
            held[device].append(holding)
    for device, here in held.items():
        shares = [each.share for each in here if each.share is not None]
        assert len(here) == 1 or len(shares) == len(here)
        assert fsum(each.compute for each in shares) <= 1
        assert sum(each.memory_bytes for each in shares) <= known[device].memory_bytes


def check_quota(snapshot: Snapshot) -> None:
    """No start takes a group or a person above a limit; what is held above one may stay."""
    plan = decide(snapshot, NOW)
    groups = {each.name: each for each in snapshot.groups}
    models = {device.id: device.model for device in snapshot.devices}
    held = after(snapshot, plan).holdings
    for start in started(snapshot, plan):
        chain = chain_of(start.group, groups)
        assert chain
        for above in chain if start.devices else ():
            inside = [each for each in held if _below(each.group, above.name, groups)]
            own = [each for each in inside if each.owner == start.owner]
            assert sum(map(weight, inside)) <= above.max_devices + 1e-9
            if above.borrowing is not None:
                assert sum(map(weight, inside)) <= above.guaranteed + above.borrowing + 1e-9
            assert sum(map(weight, own)) <= above.max_devices_per_user + 1e-9
            sessions = [each for each in own if each.kind is Kind.SESSION and each.devices]
            if above.max_sessions is not None and start.kind is Kind.SESSION:
                assert len(sessions) <= above.max_sessions
            assert above.models is None or {models[each] for each in start.devices} <= above.models


def check_budgets(snapshot: Snapshot) -> None:
    """Whoever starts finds something left of every budget above it, after those before it."""
    groups = {each.name: each for each in snapshot.groups}
    left = {each.group: each.budget - each.used - each.running for each in snapshot.budgets}
    for start in started(snapshot, decide(snapshot, NOW)):
        for above in chain_of(start.group, groups) if start.devices else ():
            if above.name in left:
                assert left[above.name] > 0
                left[above.name] -= weight(start) * (start.until - NOW)


def chain_of(name: str | None, groups: dict[str, Group]) -> list[Group]:
    """A group and all above it; nothing where one of them is missing."""
    found = []
    while name is not None:
        if name not in groups:
            return []
        found.append(groups[name])
        name = groups[name].parent
    return found


def _below(name: str, above: str, groups: dict[str, Group]) -> bool:
    at = groups.get(name)
    while at is not None and at.name != above:
        at = groups.get(at.parent or "")
    return at is not None


# -- the queue --------------------------------------------------------------------------------


def check_gangs(snapshot: Snapshot) -> None:
    """Of each role a gang has between its least and what it would like, all on one model."""
    known = {device.id: device for device in snapshot.devices}
    by_id = {request.id: request for request in snapshot.waiting}
    for start in decide(snapshot, NOW).starts:
        request = by_id[start.request_id]
        if request.gang:
            got = [known[each] for each in start.devices]
            assert len({each.model for each in got}) == 1
            assert members(request, got)


def members(request: Waiting, got: list[Device]) -> tuple[tuple[Role, ...], ...]:
    """The roles, with as many members as these devices are: in every way in which each member
    sits within one node, and spread ones on a node each."""
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
    """Where it is alone in the queue: on one node or one switch, if it fits there."""
    known = {device.id: device for device in snapshot.devices}
    for request in snapshot.waiting:
        if not request.gang or request.arrangement is Arrangement.SPREAD:
            continue
        for start in decide(replace(snapshot, waiting=(request,)), NOW).starts:
            got = [known[each] for each in start.devices]
            alike = [each for each in snapshot.devices if each.model == got[0].model]
            if Pool(alike, snapshot.holdings).fits(waiting("as many", len(got))):
                assert len({each.node for each in got}) == 1
            elif len({each.node for each in got}) > 1:
                inside = [
                    Pool([each for each in alike if each.switch == name], snapshot.holdings)
                    for name in {each.switch for each in alike} - {""}
                ]
                for roles in members(request, got):
                    if any(pool.fits(replace(request, gang=roles)) for pool in inside):
                        assert len({each.switch for each in got}) == 1


def check_everybody_is_planned(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)
    planned = [start.request_id for start in plan.starts]
    planned += [wait.request_id for wait in plan.waits]
    assert sorted(planned) == sorted(request.id for request in snapshot.waiting)
    known = {holding.request_id for holding in snapshot.holdings}
    assert {stop.request_id for stop in plan.stops} <= known


def check_whoever_has_a_stop_made_for_it_waits_for_it(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)
    reclaiming = {wait.request_id for wait in plan.waits if wait.reason is Reason.RECLAIMING}
    assert {stop.for_request for stop in plan.stops} <= reclaiming


def check_asking_back_comes_to_an_end(snapshot: Snapshot) -> None:
    """Those that are asked go at once and are back in the queue. Where nothing is kept for
    others, they made room for somebody else; in any case nobody is asked for ever, and whoever
    was moved goes on."""
    stay = tuple(each for each in snapshot.holdings if not each.leaving)
    snapshot = replace(snapshot, holdings=stay)
    kept = snapshot.reserved or any(each.lending is not None for each in snapshot.groups)
    turns, moved = 0, set[str]()
    plan = decide(snapshot, NOW)
    while plan.stops:
        gone = {stop.request_id: stop for stop in plan.stops}
        moved |= {name for name, stop in gone.items() if stop.moved}
        again = tuple(
            back(each, gone[each.request_id])
            for each in snapshot.holdings
            if each.request_id in gone
        )
        left = once_left(after(snapshot, plan), plan)
        snapshot = replace(left, waiting=(*left.waiting, *again))
        plan = decide(snapshot, NOW)
        assert kept or {start.request_id for start in plan.starts} - gone.keys()
        turns += 1
        assert turns <= len(snapshot.waiting) + len(snapshot.holdings), "it never ends"
    assert moved <= {each.request_id for each in after(snapshot, plan).holdings}


def back(holding: Holding, stop: Stop) -> Waiting:
    """What was stopped, in the queue: it keeps its age."""
    request = waiting(
        holding.request_id,
        len(holding.devices),
        age=NOW - holding.since,
        owner=holding.owner,
        group=holding.group,
        seconds=holding.until - holding.since,
        priority=holding.priority,
    )
    return replace(
        request,
        kind=holding.kind,
        share=holding.share,
        preemptible=holding.preemptible,
        moved_for=stop.for_request if stop.moved else "",
    )


KEPT = (Reason.GUARANTEE, Reason.RESERVATION)


def check_work_is_conserved(snapshot: Snapshot) -> None:
    """Whoever could start alone, and would be gone before anything else ends, has started.

    But for two things. What those count on who asked devices back is kept for them. And a part
    of a device can fill a promise, and take no free device: who was ahead of it, and left its
    group what is kept for it, starts with the next decision.
    """
    plan = decide(snapshot, NOW)
    state = after(snapshot, plan)
    in_parts = any(each.share for each in started(snapshot, plan))
    kept = {wait.request_id for wait in plan.waits if in_parts and wait.reason in KEPT}
    ends = [expected_end(each, NOW) for each in state.holdings if each.devices]
    first = min(ends, default=inf)
    asked = {stop.request_id for stop in plan.stops}
    state = replace(
        state,
        holdings=tuple(
            replace(each, leaving=each.leaving or each.request_id in asked)
            for each in state.holdings
        ),
    )
    reclaiming = {w.request_id for w in plan.waits if w.reason is Reason.RECLAIMING}
    asking = [each for each in state.waiting if each.id in reclaiming]
    for request in state.waiting:
        if request.id not in kept and NOW + span(request) <= first:
            others = (each for each in asking if each.id != request.id)
            alone = replace(state, waiting=(request, *others))
            assert request.id not in {start.request_id for start in decide(alone, NOW).starts}


def check_the_head_is_not_delayed(snapshot: Snapshot) -> None:
    """It fits as early with all that started behind it as without, where only devices lack."""
    snapshot = replace(
        snapshot,
        groups=tuple(replace(each, lending=None, models=None) for each in snapshot.groups),
        reserved=(),
    )
    plan = decide(snapshot, NOW)
    while plan.stops:
        # Where those will run for whom devices are asked back is known when these have left.
        snapshot = once_left(after(snapshot, plan), plan)
        plan = decide(snapshot, NOW)
    heads = [w.request_id for w in plan.waits if w.reason is Reason.NO_FREE_DEVICE]
    assume(heads)
    queue = [request.id for request in in_order(snapshot, Books(snapshot, NOW))]
    head = next(request for request in snapshot.waiting if request.id == heads[0])
    ahead = [
        each
        for each in started(snapshot, plan)
        if queue.index(each.request_id) < queue.index(head.id)
    ]
    without = _fits_at(head, snapshot, (*snapshot.holdings, *ahead))
    assert _fits_at(head, snapshot, (*snapshot.holdings, *started(snapshot, plan))) <= without


def _fits_at(request: Waiting, snapshot: Snapshot, holdings: Iterable[Holding]) -> float:
    running = sorted(holdings, key=lambda each: expected_end(each, NOW))
    for number in range(len(running) + 1):
        pool = Pool(snapshot.devices, running[number:])
        if pool.fits(request):
            return expected_end(running[number - 1], NOW) if number else NOW
    return inf


def check_nothing_waits_for_ever(snapshot: Snapshot) -> None:
    """Let everything run to its end: who is left could not start in an empty pool either."""
    state = replace(snapshot, reserved=(), budgets=())
    now, turns = NOW, 0
    while True:
        plan = decide(state, now)
        by_id = {request.id: request for request in state.waiting}
        begun = [
            holding_of(
                by_id[start.request_id],
                Placement(devices=start.devices, share=by_id[start.request_id].share),
                now=now,
            )
            for start in plan.starts
        ]
        left = {start.request_id for start in plan.starts}
        holdings = (*state.holdings, *begun)
        state = replace(state, waiting=tuple(w for w in state.waiting if w.id not in left))
        if not holdings:
            break
        now = max(now, min(holding.until for holding in holdings))
        state = replace(state, holdings=tuple(each for each in holdings if each.until > now))
        turns += 1
        assert turns <= 2 * (len(snapshot.waiting) + len(snapshot.holdings)), "it never ends"
    for request in state.waiting:
        assert not decide(replace(state, waiting=(request,)), now).starts


CHECKS = [
    check_devices,
    check_quota,
    check_budgets,
    check_gangs,
    check_a_packed_gang_lies_together,
    check_everybody_is_planned,
    check_whoever_has_a_stop_made_for_it_waits_for_it,
    check_asking_back_comes_to_an_end,
    check_work_is_conserved,
    check_the_head_is_not_delayed,
    check_nothing_waits_for_ever,
]
NAMES = [check.__name__.removeprefix("check_") for check in CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_every_plan(check: Check) -> None:
    settings(max_examples=40, suppress_health_check=SELDOM)(given(rich.snapshots())(check))()


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_every_plan_where_what_is_free_lies_in_pieces(check: Check) -> None:
    settings(max_examples=40, suppress_health_check=SELDOM)(given(rich.in_pieces())(check))()


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_thousands_of_plans_where_what_is_free_lies_in_pieces(check: Check) -> None:
    settings(max_examples=3000, suppress_health_check=SELDOM)(given(rich.in_pieces())(check))()


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_thousands_of_plans(check: Check) -> None:
    settings(max_examples=3000, suppress_health_check=SELDOM)(given(rich.snapshots())(check))()


# -- two snapshots that differ ----------------------------------------------------------------


@settings(max_examples=50)
@given(rich.snapshots(), st.randoms(use_true_random=False))
def test_the_order_in_which_a_snapshot_lists_things_does_not_matter(
    snapshot: Snapshot, random: Random
) -> None:
    def shuffled(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(values, len(values)))

    other = replace(
        snapshot,
        devices=shuffled(snapshot.devices),
        groups=shuffled(snapshot.groups),
        waiting=shuffled(snapshot.waiting),
        holdings=shuffled(snapshot.holdings),
        use=shuffled(snapshot.use),
        reserved=shuffled(snapshot.reserved),
    )
    assert decide(other, NOW) == decide(snapshot, NOW) == decide(snapshot, NOW)


LARGER = (
    lambda each: replace(each, max_devices=each.max_devices + 2),
    lambda each: replace(each, max_devices_per_user=each.max_devices_per_user + 2),
    lambda each: replace(each, guaranteed=each.guaranteed + 1),
    lambda each: replace(each, weight=each.weight * 2),
    lambda each: replace(each, borrowing=None),
)


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Requests for one device each, with equal limits.

    All of them may be stopped, or none: what others are guaranteed limits those that may not.
    """
    preemptible = draw(st.booleans())
    devices = node("a", draw(st.integers(1, 6)))
    groups = tuple(
        replace(
            group(name, maximum=draw(st.integers(0, 5)), per_user=draw(st.integers(1, 4))),
            guaranteed=draw(st.integers(0, 3)),
            weight=draw(st.sampled_from((1.0, 2.0))),
            borrowing=draw(st.sampled_from((None, 0, 1))),
        )
        for name in ("cs101", "math", "lab")
    )
    queue = tuple(
        replace(
            waiting(
                f"r{number}",
                age=draw(st.integers(0, 9)),
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([each.name for each in groups])),
            ),
            preemptible=preemptible,
        )
        for number in range(draw(st.integers(1, 12)))
    )
    return Snapshot(devices=devices, groups=groups, waiting=queue)


@settings(max_examples=150)
@given(crowds(), st.sampled_from(LARGER))
def test_a_larger_quota_never_delays_its_owners_group(
    snapshot: Snapshot, larger: Callable[[Group], Group]
) -> None:
    first, *others = snapshot.groups
    changed = replace(snapshot, groups=(larger(first), *others))
    own = {request.id for request in snapshot.waiting if request.group == first.name}

    def starts(asked: Snapshot) -> int:
        return sum(start.request_id in own for start in decide(asked, NOW).starts)

    assert starts(changed) >= starts(snapshot)
