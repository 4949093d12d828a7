"""A preemptor gets the devices of its victims: no request preempts twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.reclaim_step import withdrawable
from carrel.hub.scheduling.explanation.explanation import Precedence, RequestsAhead, explain
from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    DecayedUsage,
    Group,
    Health,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Snapshot,
)

from ..outcomes import after, back, once_left
from ..values import HOUR, NOW, allocation, group, node, pending


def guaranteed(name: str, devices: int, *, parent: str | None = None) -> Group:
    return replace(group(name, parent=parent), guaranteed=devices)


def job(
    request_id: str, devices: int = 1, *, of: str, owner: str = "", hours: float = 1
) -> PendingRequest:
    made = pending(request_id, devices, group=of, owner=owner, seconds=hours * HOUR)
    return replace(made, preemptible=True)


def lent(request_id: str, *devices: str, of: str = "math", hours: float = 2) -> Allocation:
    made = allocation(request_id, *devices, group=of, ends_in=hours * HOUR)
    return replace(made, preemptible=True, since=NOW)


BOB = job("bob", of="lab", owner="bob")
MUCH = (DecayedUsage(group="lab", owner="bob", device_seconds=9e5),)
"""His colleagues come before him."""

SCENES = [
    pytest.param(
        Snapshot(
            devices=(*node("a", 1), *node("b", 1, model="A100", health=Health.SICK)),
            groups=(guaranteed("lab", 1), group("math")),
            pending=(replace(job("ada", of="lab", owner="ada"), model="A100"), BOB),
            allocations=(lent("zoe", "a0"),),
            use=MUCH,
        ),
        id="a colleague ahead waits for a model that is broken",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 1),
            groups=(guaranteed("lab", 1), group("math"), group("class")),
            pending=(job("ada", of="lab", owner="ada", hours=5), BOB),
            allocations=(lent("zoe", "a0"),),
            use=MUCH,
            reserved=(
                ReservedSpan(
                    id="c",
                    group="class",
                    devices=1,
                    starts_at=NOW + 4 * HOUR,
                    ends_at=NOW + 6 * HOUR,
                ),
            ),
        ),
        id="a colleague ahead would run into a reservation",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 2),
            groups=(
                replace(group("cs", per_user=1), guaranteed=0),
                guaranteed("lab", 1, parent="cs"),
                group("cs102", parent="cs"),
            ),
            pending=(job("ada", of="lab", owner="ada", hours=0.2), BOB),
            allocations=(
                allocation("ada-runs", "a0", group="cs102", owner="ada", ends_in=20 * HOUR),
                lent("zoe", "a1", of="cs102"),
            ),
            use=MUCH,
        ),
        id="a colleague ahead holds what one person may have",
    ),
]


def stops(snapshot: Snapshot, *, turns: int = 12) -> Counter[str]:
    """Count the stops by request in cycles at the same time, in which victims are queued again."""
    found: Counter[str] = Counter()
    for _ in range(turns):
        plan = decide(snapshot, NOW)
        gone = {stop.request_id: stop for stop in plan.stops}
        found.update(gone.keys())
        held = {each.request_id: each for each in snapshot.allocations}
        again = tuple(back(held[name], stop) for name, stop in gone.items())
        left = once_left(after(snapshot, plan), plan)
        snapshot = replace(left, pending=(*left.pending, *again))
    return found


@pytest.mark.parametrize("scene", SCENES)
def test_the_preemptor_gets_the_devices_and_not_the_victim(scene: Snapshot) -> None:
    assert stops(scene) == {"zoe": 1}


def test_a_smaller_request_does_not_get_the_devices_of_victims() -> None:
    """The smaller request fits into the remaining guaranteed quota of the parent group."""
    large, small = job("large", 2, of="lab"), lent("small", "a0", of="other")
    scene = Snapshot(
        devices=(*node("a", 2), *node("b", 1)),
        groups=(
            group("cs"),
            guaranteed("lab", 2, parent="cs"),
            group("other", parent="cs"),
        ),
        pending=(large,),
        allocations=(small, allocation("z", "b0", group="other", ends_in=20 * HOUR)),
    )

    assert stops(scene) == {"small": 1}


HEAD = Snapshot(
    devices=node("a", 2),
    groups=(guaranteed("lab", 1), guaranteed("other", 2), group("math"), group("cs")),
    pending=(job("head", 2, of="other"), job("bob", of="lab", owner="bob", hours=2)),
    allocations=(lent("zoe", "a0", hours=8), allocation("session", "a1", group="cs", ends_in=HOUR)),
    use=MUCH,
)
"""Bob is behind the head, which waits for the session's end."""


def test_devices_of_victims_behind_the_head_are_for_their_preemptor() -> None:
    plan = decide(HEAD, NOW)
    assert [(stop.request_id, stop.for_request) for stop in plan.stops] == [("zoe", "bob")]

    leaving = tuple(replace(each, leaving=each.request_id == "zoe") for each in HEAD.allocations)
    asked = {"zoe": "bob"}
    assert withdrawable(replace(HEAD, allocations=leaving), asked, NOW, expired={"zoe"}) == ()

    assert stops(HEAD) == {"zoe": 1}


def test_a_preemptor_goes_first_also_when_the_group_of_its_victim_is_gone() -> None:
    """An urgent request without victims is the head and would be delayed."""
    head = replace(job("head", 2, of="other"), priority=PriorityClass.URGENT)
    gave = replace(job("zoe", of="gone"), stopped_for="bob")
    scene = replace(HEAD, pending=(head, HEAD.pending[1], gave), allocations=HEAD.allocations[1:])

    assert [start.request_id for start in decide(scene, NOW).starts] == ["bob"]


def test_the_victim_waits_behind_its_preemptor_with_that_reason() -> None:
    gave = replace(job("zoe", of="math"), stopped_for="bob")
    scene = Snapshot(
        devices=node("a", 1),
        groups=(guaranteed("lab", 1), group("math")),
        pending=(gave, BOB),
        allocations=(allocation("runs", "a0", group="other"),),
    )

    waits = decide(scene, NOW).waits

    assert [each.request_id for each in waits] == ["bob", "zoe"]
    assert waits[1].reason is Reason.BEHIND_OTHERS
    found = explain(scene, "zoe", NOW, waits=waits)
    assert found is not None
    assert found.ahead == (RequestsAhead(rule=Precedence.PREEMPTOR, count=1),)
