"""A preemption is cancelled if no preemptor needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.reclaim_step import withdrawable
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    BudgetBalance,
    PendingRequest,
    PriorityClass,
    Snapshot,
)

from .. import outcomes, rich
from ..values import HOUR, NOW, allocation, group, node, pending

GROUPS = (
    replace(group("cs101"), guaranteed=2),
    replace(group("lab"), guaranteed=2),
    group("other"),
)


def borrows(number: int, *, lost: float = 0.0, leaving: bool = True) -> Allocation:
    """Allocations ``r0`` on ``a0``, and so on, of a group without guaranteed quota."""
    made = allocation(f"r{number}", f"a{number}", group="other", ends_in=HOUR)
    return replace(made, preemptible=True, leaving=leaving, saved_at=NOW - lost)


def lends(
    *queue: PendingRequest,
    leaving: Sequence[int] = (0, 1),
    gone: Sequence[int] = (),
    budgets: Iterable[BudgetBalance] = (),
) -> Snapshot:
    """Four devices, borrowed by four jobs; the first would lose the most, then the next."""
    held = [borrows(n, lost=100 - n, leaving=n in leaving) for n in range(4) if n not in gone]
    return Snapshot(
        devices=node("a", 4),
        groups=GROUPS,
        allocations=tuple(held),
        pending=queue,
        budgets=tuple(budgets),
    )


FOR_TWO = {"r0": "asks", "r1": "asks"}
USED_UP = BudgetBalance(group="cs101", budget=1.0, used=1.0, running=0.0)
URGENT = replace(pending("first", 1, group="lab"), priority=PriorityClass.URGENT)


@pytest.mark.parametrize(
    ("scene", "asked", "expected"),
    [
        pytest.param(lends(pending("asks", 2)), FOR_TWO, (), id="both are wanted"),
        pytest.param(
            lends(pending("asks", 1)), FOR_TWO, ("r0",), id="it asks for one instead of two"
        ),
        pytest.param(
            lends(pending("asks", 2), gone=(3,)), FOR_TWO, ("r0",), id="another has ended"
        ),
        pytest.param(
            lends(pending("asks", 2), gone=(2, 3)), FOR_TWO, ("r0", "r1"), id="two have ended"
        ),
        pytest.param(
            lends(pending("asks", 2), leaving=(0, 1, 2)),
            FOR_TWO,
            ("r0",),
            id="a third one leaves in any case",
        ),
        pytest.param(lends(), FOR_TWO, ("r0", "r1"), id="no preemptor waits for it any more"),
        pytest.param(
            lends(pending("asks", 1), URGENT), FOR_TWO, (), id="who comes first has the other one"
        ),
        pytest.param(
            lends(pending("asks", 1), pending("also", 1, group="lab")),
            {"r0": "asks", "r1": "also"},
            (),
            id="one is for another preemptor",
        ),
    ],
)
def test_a_victim_that_no_preemptor_needs_stays(
    scene: Snapshot, asked: Mapping[str, str], expected: tuple[str, ...]
) -> None:
    assert withdrawable(scene, asked, NOW) == expected


def test_victims_of_a_preemptor_held_by_a_budget_keep_their_notices_until_the_end() -> None:
    scene = lends(pending("asks", 2), budgets=[USED_UP])

    assert withdrawable(scene, FOR_TWO, NOW) == ()
    assert withdrawable(scene, FOR_TWO, NOW, expired={"r1"}) == ("r1",)
    assert withdrawable(scene, FOR_TWO, NOW, expired={"r0", "r1"}) == ("r0", "r1")


@given(st.one_of(rich.snapshots(), rich.in_pieces()))
def test_no_preemption_is_futile(snapshot: Snapshot) -> None:
    """Otherwise notices would be sent again and again."""
    plan = decide(snapshot, NOW)
    asked = {stop.request_id: stop.for_request for stop in plan.stops}
    then = outcomes.after(snapshot, plan)
    leaving = tuple(
        replace(each, leaving=each.leaving or each.request_id in asked) for each in then.allocations
    )
    assert withdrawable(replace(then, allocations=leaving), asked, NOW) == ()
