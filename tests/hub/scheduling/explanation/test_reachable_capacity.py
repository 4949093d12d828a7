"""Admission rejects requests that could never start beside the quota of other groups."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.explanation.admission_rules import (
    ReachableCapacity,
    Rule,
    admit,
    reachable,
)
from carrel.hub.scheduling.model.snapshot import Group, Health, Mark, MarkKind, Snapshot

from .. import rich
from ..values import NOW, group, node

FOUR = node("a", 4)


def guaranteed(name: str, devices: int) -> Group:
    return replace(group(name), guaranteed=devices)


CASES = [
    pytest.param(
        (group("lab"),),
        ReachableCapacity(preemptible=4, non_preemptible=4),
        id="nothing is promised",
    ),
    pytest.param(
        (guaranteed("lab", 1), guaranteed("cs101", 2)),
        ReachableCapacity(preemptible=4, non_preemptible=2),
        id="its own guaranteed quota, and what no group is guaranteed",
    ),
    pytest.param(
        (guaranteed("lab", 2), guaranteed("cs101", 2)),
        ReachableCapacity(preemptible=4, non_preemptible=2),
        id="all is promised",
    ),
    pytest.param(
        (group("lab"), guaranteed("cs101", 4)),
        ReachableCapacity(preemptible=4, non_preemptible=0),
        id="all to another group",
    ),
    pytest.param(
        (replace(group("lab"), sessions_borrow=True), guaranteed("cs101", 4)),
        ReachableCapacity(preemptible=4, non_preemptible=4),
        id="its sessions may borrow",
    ),
    pytest.param(
        (group("lab"), replace(guaranteed("cs101", 3), lending=1)),
        ReachableCapacity(preemptible=2, non_preemptible=1),
        id="two are not lent",
    ),
    pytest.param(
        (guaranteed("lab", 3), guaranteed("cs101", 3)),
        ReachableCapacity(preemptible=4, non_preemptible=3),
        id="more is promised than there is",
    ),
]


@pytest.mark.parametrize(("groups", "expected"), CASES)
def test_the_reachable_capacity_of_a_group(
    groups: tuple[Group, ...], expected: ReachableCapacity
) -> None:
    assert reachable("lab", groups, FOUR) == expected


@pytest.mark.parametrize("kind", MarkKind)
def test_unhealthy_devices_count_as_reachable(kind: MarkKind) -> None:
    groups = (guaranteed("lab", 1), guaranteed("cs101", 2))
    broken = tuple(
        replace(each, health=Health.SICK, marks=(Mark(target=each.id, kind=kind, since=NOW),))
        for each in FOUR
    )
    assert reachable("lab", groups, broken) == reachable("lab", groups, FOUR)


def test_the_refusal_says_what_would_be_accepted() -> None:
    groups = (guaranteed("lab", 1), guaranteed("cs101", 2))

    refusal = admit(
        groups=groups,
        pool=FOUR,
        group="lab",
        devices=3,
        seconds=60,
        reach=reachable("lab", groups, FOUR),
    )

    assert refusal is not None
    assert refusal.rule is Rule.GUARANTEED_TO_OTHERS
    assert refusal.message == (
        "Because of the guaranteed quotas of other groups, lab can hold at most 2 devices for work "
        "that cannot be preempted; you asked for 3."
    )
    assert refusal.accepted == "Ask for 0 to 2, or for a job that may be preempted."


def test_more_than_a_group_may_ever_borrow_is_refused_as_well() -> None:
    groups = (replace(guaranteed("lab", 1), borrowing=2),)

    refusal = admit(groups=groups, pool=FOUR, group="lab", devices=4, seconds=60)

    assert refusal is not None
    assert refusal.rule is Rule.GROUP_MAXIMUM
    assert refusal.message == (
        "lab may hold at most 3 devices at one time: 1 guaranteed, and 2 borrowed; you asked for 4."
    )
    assert refusal.accepted == "Ask for 0 to 3."


@given(rich.snapshots())
def test_every_start_was_within_the_reachable_capacity(asked: Snapshot) -> None:
    pending = {each.id: each for each in asked.pending}
    for start in decide(asked, NOW).starts:
        request = pending[start.request_id]
        most = reachable(request.group, asked.groups, asked.devices)
        assert len(start.devices) <= (
            most.preemptible if request.preemptible else most.non_preemptible
        )
