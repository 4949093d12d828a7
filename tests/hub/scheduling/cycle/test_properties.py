"""Properties of all plans for any snapshot (design: section 5, rules 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Plan, Reason
from carrel.hub.scheduling.model.snapshot import Allocation, Group, Health, PriorityClass, Snapshot

from ....promises import in_time
from ..strategies import snapshots
from ..values import HOUR, NOW, allocation, group, node, pending


def chain(snapshot: Snapshot, name: str | None) -> Iterator[Group]:
    """Return the known groups from one up; written again, so that it shares no mistake."""
    found = {each.name: each for each in snapshot.groups}
    while name in found:
        yield found[name]
        name = found[name].parent


def after(snapshot: Snapshot, plan: Plan) -> list[Allocation]:
    """Return the allocations after the plan."""
    by_id = {request.id: request for request in snapshot.pending}
    return [
        *snapshot.allocations,
        *(
            Allocation(
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


def held_by(snapshot: Snapshot, allocations: list[Allocation], name: str, owner: str | None) -> int:
    return sum(
        len(allocation.devices)
        for allocation in allocations
        if any(each.name == name for each in chain(snapshot, allocation.group))
        and owner in (None, allocation.owner)
    )


@given(snapshots())
def test_every_waiting_request_is_in_the_plan_once(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)

    planned = [start.request_id for start in plan.starts]
    planned += [wait.request_id for wait in plan.waits]
    assert sorted(planned) == sorted(request.id for request in snapshot.pending)


@given(snapshots())
def test_a_start_gets_healthy_free_devices_of_one_node_as_it_asked(snapshot: Snapshot) -> None:
    by_id = {request.id: request for request in snapshot.pending}
    devices = {device.id: device for device in snapshot.devices}
    plan = decide(snapshot, NOW)

    for start in plan.starts:
        request = by_id[start.request_id]
        granted = [devices[device] for device in start.devices]
        assert len(set(start.devices)) == request.devices
        assert len({device.node for device in granted}) <= 1
        assert all(device.health is Health.OK for device in granted)
        assert all(request.model in (None, device.model) for device in granted)
    taken = [device for allocation in after(snapshot, plan) for device in allocation.devices]
    assert len(taken) == len(set(taken))


@given(snapshots())
def test_no_start_takes_a_group_or_a_person_above_a_limit(snapshot: Snapshot) -> None:
    plan = decide(snapshot, NOW)
    allocations = after(snapshot, plan)

    for started in allocations[len(snapshot.allocations) :]:
        groups = list(chain(snapshot, started.group))
        assert groups
        assert groups[-1].parent is None
        for each in groups if started.devices else ():
            assert held_by(snapshot, allocations, each.name, None) <= each.max_devices
            by_owner = held_by(snapshot, allocations, each.name, started.owner)
            assert by_owner <= each.max_devices_per_user


@given(snapshots())
def test_only_one_is_the_head_of_those_that_lack_devices(snapshot: Snapshot) -> None:
    reasons = [wait.reason for wait in decide(snapshot, NOW).waits]
    assert reasons.count(Reason.NO_FREE_DEVICE) <= 1


@given(snapshots())
def test_places_count_blocking_requests_only(snapshot: Snapshot) -> None:
    """No position is before that of a request that is ahead and held by no limit of its own."""
    by_id = {request.id: request for request in snapshot.pending}
    in_the_way = 0
    for wait in decide(snapshot, NOW).waits:
        assert wait.ahead == wait.place - 1 >= in_the_way
        if by_id[wait.request_id].devices and wait.reason in (
            Reason.NO_FREE_DEVICE,
            Reason.POOL_TOO_SMALL,
        ):
            in_the_way += 1


@given(snapshots())
def test_no_estimate_lies_in_the_past(snapshot: Snapshot) -> None:
    for wait in decide(snapshot, NOW).waits:
        assert wait.estimate is None or NOW <= wait.estimate.at <= wait.estimate.latest


@given(snapshots(), st.integers(1, 8))
def test_an_estimate_is_when_it_starts_if_all_use_their_whole_limit(
    snapshot: Snapshot, spans: int
) -> None:
    """Plans are carried out until nothing is left to start. All requests are equal and of one
    owner, so that none passes another as usage grows."""
    state = _equal(snapshot, spans * 600.0)
    expected = {w.request_id: w.estimate.at for w in decide(state, NOW).waits if w.estimate}
    started: dict[str, float] = {}
    now = NOW
    while True:
        plan = decide(state, now)
        started_with = {start.request_id for start in plan.starts}
        started |= dict.fromkeys(started_with, now)
        running = [
            allocation
            if allocation.since < NOW
            else replace(allocation, since=now, until=now + spans * 600)
            for allocation in after(state, plan)[len(state.allocations) :]
        ]
        running += state.allocations
        if not running:
            break
        now = max(now, min(allocation.until for allocation in running))
        state = replace(
            state,
            pending=tuple(each for each in state.pending if each.id not in started_with),
            allocations=tuple(each for each in running if each.until > now),
        )

    assert {name: started.get(name) for name in expected} == expected


def _equal(snapshot: Snapshot, seconds: float) -> Snapshot:
    return replace(
        snapshot,
        groups=(group("cs101"),),
        pending=tuple(
            replace(each, group="cs101", owner="ada", devices=1, seconds=seconds, model=None)
            for each in snapshot.pending
        ),
    )


def test_a_long_queue_is_decided_fast() -> None:
    """The worst case: limits of a tree hold all requests, and none is behind the head."""
    devices = tuple(
        replace(each, id=f"{n}-{each.id}", node=f"node{n}")
        for n in range(25)
        for each in node("a", 8)
    )
    snapshot = Snapshot(
        devices=devices,
        groups=(group("all"), *(group(f"g{n}", maximum=2, parent="all") for n in range(40))),
        allocations=tuple(
            allocation(f"run{n}", device.id, group=f"g{n % 40}", ends_in=HOUR + n)
            for n, device in enumerate(devices)
        ),
        pending=tuple(
            pending(
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

    # Ten times the expected time, for busy machines.
    in_time(decided, {"a decision": 0.5})
