"""Properties of pairs of snapshots that differ in order only, or in one larger quota."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import BudgetBalance, Group, Kind, Snapshot

from .. import rich
from ..outcomes import is_below
from ..values import HOUR, NOW, allocation, group, node, pending

T = TypeVar("T")


@given(rich.snapshots(), st.randoms(use_true_random=False))
def test_the_order_in_which_a_snapshot_lists_things_does_not_matter(
    snapshot: Snapshot, random: Random
) -> None:
    """Nor does the number of calls."""

    def shuffled(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(values, len(values)))

    other = replace(
        snapshot,
        devices=shuffled(snapshot.devices),
        groups=shuffled(snapshot.groups),
        pending=shuffled(snapshot.pending),
        allocations=shuffled(snapshot.allocations),
        use=shuffled(snapshot.use),
        reserved=shuffled(snapshot.reserved),
        budgets=shuffled(snapshot.budgets),
    )
    assert decide(other, NOW) == decide(snapshot, NOW) == decide(snapshot, NOW)


Larger = Callable[[Snapshot, str], Snapshot]
"""The same with a larger quota of one group."""


def of_group(change: Callable[[Group], Group]) -> Larger:
    def larger(snapshot: Snapshot, name: str) -> Snapshot:
        groups = (change(each) if each.name == name else each for each in snapshot.groups)
        return replace(snapshot, groups=tuple(groups))

    return larger


def more_budget(snapshot: Snapshot, name: str) -> Snapshot:
    budgets = (
        replace(each, budget=each.budget + HOUR) if each.group == name else each
        for each in snapshot.budgets
    )
    return replace(snapshot, budgets=tuple(budgets))


def no_budget(snapshot: Snapshot, name: str) -> Snapshot:
    budgets = (each for each in snapshot.budgets if each.group != name)
    return replace(snapshot, budgets=tuple(budgets))


LARGER: Mapping[str, Larger] = {
    "more devices": of_group(lambda each: replace(each, max_devices=each.max_devices + 2)),
    "more devices per user": of_group(
        lambda each: replace(each, max_devices_per_user=each.max_devices_per_user + 2)
    ),
    "more guaranteed": of_group(lambda each: replace(each, guaranteed=each.guaranteed + 1)),
    "more weight": of_group(lambda each: replace(each, weight=each.weight * 2)),
    "borrows more": of_group(
        lambda each: replace(each, borrowing=None if each.borrowing is None else each.borrowing + 1)
    ),
    "borrows all": of_group(lambda each: replace(each, borrowing=None)),
    "lends less": of_group(lambda each: replace(each, lending=max(0, (each.lending or 0) - 1))),
    "lends nothing": of_group(lambda each: replace(each, lending=0)),
    "more sessions": of_group(
        lambda each: replace(
            each, max_sessions=None if each.max_sessions is None else each.max_sessions + 1
        )
    ),
    "any number of sessions": of_group(lambda each: replace(each, max_sessions=None)),
    "sessions borrow": of_group(lambda each: replace(each, sessions_borrow=True)),
    "more budget": more_budget,
    "no budget": no_budget,
}
"""What a group has more of; a lower lending limit keeps more for itself. The longest time that it
allows is not among it: admission compares it, and no decision uses it."""
FLAT = {"cs101": None, "math": None, "lab": None}
TREE = {"cs": None, "cs101": "cs", "cs102": "cs", "math": None}


@st.composite
def crowds(draw: st.DrawFn, parents: Mapping[str, str | None], running: int) -> Snapshot:
    """Draw requests for one device each with equal limits. All or none are preemptible, and all or
    none are sessions, since guarantees of others limit non-preemptible work."""
    preemptible = draw(st.booleans())
    kind = Kind.JOB if preemptible else draw(st.sampled_from((Kind.JOB, Kind.SESSION)))
    devices = node("a", draw(st.integers(1, 6)))
    groups = tuple(
        replace(
            group(
                name,
                maximum=draw(st.integers(0, 5)),
                per_user=draw(st.integers(1, 4)),
                parent=parent,
            ),
            guaranteed=draw(st.integers(0, 3)),
            weight=draw(st.sampled_from((1.0, 2.0))),
            borrowing=draw(st.sampled_from((None, 0, 1))),
            lending=draw(st.sampled_from((None, None, 0, 1, 2))),
            max_sessions=draw(st.sampled_from((None, 0, 1, 2))),
            sessions_borrow=draw(st.booleans()),
        )
        for name, parent in parents.items()
    )
    queue = tuple(
        replace(
            pending(
                f"r{number}",
                age=draw(st.integers(0, 9)),
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([*parents])),
            ),
            kind=kind,
            preemptible=preemptible,
        )
        for number in range(draw(st.integers(1, 12)))
    )
    allocations = tuple(
        replace(
            allocation(
                f"run{number}",
                device.id,
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([*parents])),
                ends_in=HOUR,
            ),
            kind=kind,
            preemptible=preemptible,
        )
        for number, device in enumerate(devices[: draw(st.integers(0, running))])
    )
    budgets = tuple(
        BudgetBalance(group=name, budget=draw(st.integers(0, 3)) * HOUR, used=0.0)
        for name in parents
        if draw(rich.often(False, True))
    )
    return Snapshot(
        devices=devices, groups=groups, pending=queue, allocations=allocations, budgets=budgets
    )


def check_larger(snapshot: Snapshot, name: str, larger: str) -> None:
    """Check that with a larger quota as many requests of the group and its subgroups start."""
    groups = {each.name: each for each in snapshot.groups}
    own = {each.id for each in snapshot.pending if is_below(each.group, name, groups)}

    def starts(asked: Snapshot) -> int:
        return sum(start.request_id in own for start in decide(asked, NOW).starts)

    assert starts(LARGER[larger](snapshot, name)) >= starts(snapshot)


@pytest.mark.hypothesis
@pytest.mark.parametrize("parents", [FLAT, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("running", [0, 4], ids=["nothing runs", "some run"])
def test_a_larger_quota_never_delays_its_owners_group(
    parents: Mapping[str, str | None], running: int
) -> None:
    crowd, name = crowds(parents, running), st.sampled_from([*parents])
    given(crowd, name, st.sampled_from([*LARGER]))(check_larger)()
