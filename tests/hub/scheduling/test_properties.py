"""What holds for every plan, whatever the snapshot (design: section 5, rules 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from time import perf_counter
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle import decide
from carrel.hub.scheduling.model import (
    Group,
    Health,
    Holding,
    Plan,
    PriorityClass,
    Reason,
    Snapshot,
    Waiting,
)
from carrel.hub.scheduling.ordering import order_key

from ...promises import in_time
from .strategies import snapshots
from .values import HOUR, NOW, group, holding, node, waiting

T = TypeVar("T")
many = settings(max_examples=120, deadline=None)


def chain(snapshot: Snapshot, name: str | None) -> Iterator[Group]:
    """The known groups from one up: written anew, so that it cannot share a mistake."""
    found = {each.name: each for each in snapshot.groups}
    while name in found:
        yield found[name]
        name = found[name].parent


def after(snapshot: Snapshot, plan: Plan) -> list[Holding]:
    """What is held once the plan is carried out."""
    by_id = {request.id: request for request in snapshot.waiting}
    return [
        *snapshot.holdings,
        *(
            Holding(
                request_id=start.request_id,
                owner=by_id[start.request_id].owner,
                group=by_id[start.request_id].group,
                devices=start.devices,
                since=NOW,
                until=NOW + by_id[start.request_id].seconds,
            )
            for start in plan.starts
        ),
    ]


def held_by(snapshot: Snapshot, holdings: list[Holding], name: str, owner: str | None) -> int:
    return sum(
        len(holding.devices)
        for holding in holdings
        if any(each.name == name for each in chain(snapshot, holding.group))
        and owner in (None, holding.owner)
    )


@many
@given(snapshots())
def test_every_waiting_request_is_in_the_plan_once(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)

    planned = [start.request_id for start in plan.starts]
    planned += [wait.request_id for wait in plan.waits]
    assert sorted(planned) == sorted(request.id for request in snapshot.waiting)


@many
@given(snapshots())
def test_a_start_gets_healthy_free_devices_of_one_node_as_it_asked(snapshot: Snapshot) -> None:
    by_id = {request.id: request for request in snapshot.waiting}
    devices = {device.id: device for device in snapshot.devices}
    plan = decide(snapshot, NOW)

    for start in plan.starts:
        request = by_id[start.request_id]
        granted = [devices[device] for device in start.devices]
        assert len(set(start.devices)) == request.devices
        assert len({device.node for device in granted}) <= 1
        assert all(device.health is Health.OK for device in granted)
        assert all(request.model in (None, device.model) for device in granted)
    taken = [device for holding in after(snapshot, plan) for device in holding.devices]
    assert len(taken) == len(set(taken))


@many
@given(snapshots())
def test_no_start_takes_a_group_or_a_person_above_a_limit(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)
    holdings = after(snapshot, plan)

    for started in holdings[len(snapshot.holdings) :]:
        groups = list(chain(snapshot, started.group))
        assert groups
        assert groups[-1].parent is None
        for each in groups if started.devices else ():
            assert held_by(snapshot, holdings, each.name, None) <= each.max_devices
            by_owner = held_by(snapshot, holdings, each.name, started.owner)
            assert by_owner <= each.max_devices_per_user


@many
@given(snapshots(), st.randoms(use_true_random=False))
def test_the_order_in_which_a_snapshot_lists_things_does_not_matter(
    snapshot: Snapshot, random: Random
) -> None:
    def shuffled(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(values, len(values)))

    other = Snapshot(
        devices=shuffled(snapshot.devices),
        groups=shuffled(snapshot.groups),
        waiting=shuffled(snapshot.waiting),
        holdings=shuffled(snapshot.holdings),
    )

    assert decide(other, NOW) == decide(snapshot, NOW) == decide(snapshot, NOW)


@many
@given(snapshots())
def test_nobody_starts_past_somebody_who_waits_for_devices(snapshot: Snapshot) -> None:
    """Once one lacks devices, only those without devices start behind it."""
    by_id = {request.id: request for request in snapshot.waiting}
    plan = decide(snapshot, NOW)
    lacking = [w.request_id for w in plan.waits if w.reason is Reason.NO_FREE_DEVICE]

    assert len(lacking) <= 1
    for start in plan.starts:
        if start.devices and lacking:
            assert order_key(by_id[start.request_id]) < order_key(by_id[lacking[0]])


SIZES_IN_LINE = st.lists(st.integers(1, 4), min_size=2, max_size=6)


@many
@given(st.integers(0, 4), st.integers(0, 4), SIZES_IN_LINE, st.sampled_from(("group", "person")))
def test_nobody_starts_past_somebody_into_the_room_that_it_waits_for(
    maximum: int, held: int, sizes: list[int], limit: str
) -> None:
    """Under one limit, and with devices for all, those that start are the first in the line."""
    of_group, of_person = (maximum, 100) if limit == "group" else (100, maximum)
    devices = node("a", 30)
    line = [waiting(f"r{n}", size, age=-n, owner="ada") for n, size in enumerate(sizes)]
    snapshot = Snapshot(
        devices=devices,
        groups=(group("cs101", maximum=of_group, per_user=of_person),),
        holdings=(holding("run", *(each.id for each in devices[:held]), owner="ada"),),
        waiting=tuple(line),
    )
    possible = [request for request in line if request.devices <= maximum]

    started = [start.request_id for start in decide(snapshot, NOW).starts]
    assert started == [request.id for request in possible[: len(started)]]
    used = held + sum(request.devices for request in possible[: len(started)])
    for first in possible[len(started) :][:1]:
        assert used + first.devices > maximum


@many
@given(snapshots())
def test_nobody_starts_past_somebody_else_who_could_have_started(snapshot: Snapshot) -> None:
    """Give the devices of a start to one ahead of it: some limit must forbid that."""
    by_id = {request.id: request for request in snapshot.waiting}
    devices = {device.id: device for device in snapshot.devices}
    plan = decide(snapshot, NOW)
    holdings = after(snapshot, plan)

    for start in plan.starts:
        request = by_id[start.request_id]
        others = [each for each in holdings if each.request_id != start.request_id]
        for wait in plan.waits:
            ahead = by_id[wait.request_id]
            if not 0 < ahead.devices <= request.devices or order_key(ahead) > order_key(request):
                continue
            models = {devices[device].model for device in start.devices}
            fits = ahead.model is None or models == {ahead.model}
            assert not fits or _forbidden(snapshot, others, ahead) or _own_line(plan, by_id, ahead)


def _forbidden(snapshot: Snapshot, holdings: list[Holding], request: Waiting) -> bool:
    groups = list(chain(snapshot, request.group))
    return (
        not groups
        or groups[-1].parent is not None
        or any(
            held_by(snapshot, holdings, each.name, None) + request.devices > each.max_devices
            or held_by(snapshot, holdings, each.name, request.owner) + request.devices
            > each.max_devices_per_user
            for each in groups
        )
    )


def _own_line(plan: Plan, by_id: dict[str, Waiting], request: Waiting) -> bool:
    """It waits behind one of its own groups that waits for room under a limit."""
    reason = {wait.request_id: wait.reason for wait in plan.waits}
    return reason[request.id] is Reason.BEHIND_OTHERS and any(
        reason[other] in (Reason.GROUP_MAXIMUM, Reason.USER_MAXIMUM)
        and order_key(by_id[other]) < order_key(request)
        for other in reason
    )


@many
@given(snapshots())
def test_places_count_the_requests_with_devices_from_one(snapshot: Snapshot) -> None:
    by_id = {request.id: request for request in snapshot.waiting}
    waits = decide(snapshot, NOW).waits
    with_devices = [wait for wait in waits if by_id[wait.request_id].devices]

    assert [wait.place for wait in with_devices] == list(range(1, len(with_devices) + 1))
    assert all(wait.ahead == wait.place - 1 for wait in waits)
    keys = [order_key(by_id[wait.request_id]) for wait in waits]
    assert keys == sorted(keys)


@many
@given(snapshots())
def test_no_estimate_lies_in_the_past(snapshot: Snapshot) -> None:
    for wait in decide(snapshot, NOW).waits:
        assert wait.estimate is None or NOW <= wait.estimate.at <= wait.estimate.latest


@many
@given(snapshots())
def test_estimates_grow_along_the_queue_where_only_devices_are_short(snapshot: Snapshot) -> None:
    plan = decide(replace(snapshot, groups=(group("cs101"),), waiting=_of_one_group(snapshot)), NOW)
    times = [
        wait.estimate.at
        for wait in plan.waits
        if wait.estimate and wait.reason is not Reason.POOL_TOO_SMALL
    ]

    assert all(earlier <= later for earlier, later in pairwise(times))


def _of_one_group(snapshot: Snapshot) -> tuple[Waiting, ...]:
    return tuple(replace(request, group="cs101") for request in snapshot.waiting)


@many
@given(snapshots())
def test_an_estimate_is_when_it_starts_if_all_use_their_whole_limit(snapshot: Snapshot) -> None:
    """Carry the plan out, let time pass up to the next end, decide again, until nothing moves."""
    expected = {w.request_id: w.estimate.at for w in decide(snapshot, NOW).waits if w.estimate}
    started: dict[str, float] = {}
    now, state = NOW, snapshot
    while True:
        plan = decide(state, now)
        begun = {start.request_id: start for start in plan.starts}
        for name in begun:
            started.setdefault(name, now)
        running = [
            *state.holdings,
            *(
                Holding(
                    request_id=request.id,
                    owner=request.owner,
                    group=request.group,
                    devices=begun[request.id].devices,
                    since=now,
                    until=now + request.seconds,
                )
                for request in state.waiting
                if request.id in begun
            ),
        ]
        if not running:
            break
        now = max(now, min(holding.until for holding in running))
        state = replace(
            state,
            waiting=tuple(each for each in state.waiting if each.id not in begun),
            holdings=tuple(each for each in running if each.until > now),
        )

    assert {name: started.get(name) for name in expected} == expected


def test_a_long_queue_is_decided_fast() -> None:
    """The worst case for the pass: nobody is blocked, and limits of a tree hold everybody."""
    devices = tuple(
        replace(each, id=f"{n}-{each.id}", node=f"node{n}")
        for n in range(25)
        for each in node("a", 8)
    )
    snapshot = Snapshot(
        devices=devices,
        groups=(group("all"), *(group(f"g{n}", maximum=2, parent="all") for n in range(40))),
        holdings=tuple(
            holding(f"run{n}", device.id, group=f"g{n % 40}", ends_in=HOUR + n)
            for n, device in enumerate(devices)
        ),
        waiting=tuple(
            waiting(
                f"r{n}", 1 + n % 4, age=n % 50, group=f"g{n % 40}", priority=PriorityClass.NORMAL
            )
            for n in range(1000)
        ),
    )
    decide(snapshot, NOW)

    def decided() -> dict[str, float]:
        begin = perf_counter()
        decide(snapshot, NOW)
        return {"a decision": perf_counter() - begin}

    # Ten times what is expected, for machines that are busy.
    in_time(decided, {"a decision": 0.5})
