from __future__ import annotations

import pytest

from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import Allocation, Group
from carrel.hub.scheduling.quota.headroom import LimitReached, limit_reached
from carrel.hub.scheduling.quota.tree import GroupLimits, GroupTree, Tally, limits

from ..values import allocation, group, pending

COURSE = (group("cs101", maximum=4, per_user=2, seconds=8 * 3600),)
UNDER_DEPARTMENT = (
    group("cs", maximum=3, per_user=1, seconds=3600),
    group("cs101", maximum=4, per_user=2, parent="cs"),
)


def test_the_limits_of_a_group_are_the_smallest_of_its_chain() -> None:
    tree = GroupTree(UNDER_DEPARTMENT)

    assert limits(tree, "cs101") == GroupLimits(
        max_devices=3, max_devices_per_user=1, max_seconds=3600
    )
    assert limits(tree, "cs999") is None


def test_allocations_count_for_the_group_and_all_above_it() -> None:
    tree = GroupTree(UNDER_DEPARTMENT)
    tally = Tally(tree, [allocation("j", "a0", "a1", owner="ada", group="cs101")])
    tally.add("cs", "ada", 1000)

    assert [tally.of_group(name) for name in ("cs101", "cs", "other")] == [2, 3, 0]
    assert [tally.of_user(name, "ada") for name in ("cs101", "cs")] == [2, 3]
    assert tally.of_user("cs101", "bob") == 0


FULL_FOR_ADA = (allocation("j", "a0", "a1", owner="ada"),)
FULL = (*FULL_FOR_ADA, allocation("k", "a2", "a3", owner="bob"))


@pytest.mark.parametrize(
    ("groups", "allocations", "devices", "expected"),
    [
        pytest.param(COURSE, (), 2, None, id="an empty group has room"),
        pytest.param(
            COURSE,
            FULL_FOR_ADA,
            1,
            LimitReached(reason=Reason.USER_MAXIMUM, group="cs101", permanent=False),
            id="the owner holds the maximum",
        ),
        pytest.param(
            COURSE,
            (allocation("j", "a0", "a1", owner="cy"), allocation("k", "a2", "a3", owner="bob")),
            1,
            LimitReached(reason=Reason.GROUP_MAXIMUM, group="cs101", permanent=False),
            id="others of the group hold the maximum",
        ),
        pytest.param(
            COURSE,
            FULL,
            1,
            LimitReached(reason=Reason.USER_MAXIMUM, group="cs101", permanent=False),
            id="where both are full the owner's own limit is named",
        ),
        pytest.param(COURSE, FULL, 0, None, id="no device needs no room"),
        pytest.param(
            COURSE,
            (),
            5,
            LimitReached(reason=Reason.USER_MAXIMUM, group="cs101", permanent=True),
            id="a limit that was lowered below the request",
        ),
        pytest.param(
            (group("cs", maximum=2), group("cs101", parent="cs"), group("cs102", parent="cs")),
            (allocation("j", "a0", "a1", group="cs102"),),
            1,
            LimitReached(reason=Reason.GROUP_MAXIMUM, group="cs", permanent=False),
            id="a sister group has used up what the department may hold",
        ),
        pytest.param(
            (),
            (),
            0,
            LimitReached(reason=Reason.GROUP_MAXIMUM, group="cs101", permanent=True),
            id="a missing group permits nothing, not even CPU",
        ),
    ],
)
def test_headroom(
    groups: tuple[Group, ...],
    allocations: tuple[Allocation, ...],
    devices: int,
    expected: LimitReached | None,
) -> None:
    tree = GroupTree(groups)
    tally = Tally(tree, allocations)

    assert limit_reached(pending("r", devices, owner="ada"), tree, tally) == expected
