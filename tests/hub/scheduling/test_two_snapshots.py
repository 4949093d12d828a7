"""What two snapshots that differ have in common: by order only, or by a quota that is larger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle import decide
from carrel.hub.scheduling.model import Group, Snapshot

from . import rich
from .outcomes import is_below
from .values import HOUR, NOW, group, holding, node, waiting

T = TypeVar("T")
SELDOM = (HealthCheck.filter_too_much, HealthCheck.too_slow)


def check_order(snapshot: Snapshot, random: Random) -> None:
    """The order in which a snapshot lists things does not matter, nor how often it is asked."""

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
        budgets=shuffled(snapshot.budgets),
    )
    assert decide(other, NOW) == decide(snapshot, NOW) == decide(snapshot, NOW)


ORDERS = (rich.snapshots(), st.randoms(use_true_random=False))


def test_the_order_in_which_a_snapshot_lists_things_does_not_matter() -> None:
    settings(max_examples=50, suppress_health_check=SELDOM)(given(*ORDERS)(check_order))()


@pytest.mark.slow
def test_thousands_of_orders() -> None:
    settings(max_examples=3000, suppress_health_check=SELDOM)(given(*ORDERS)(check_order))()


LARGER: tuple[Callable[[Group], Group], ...] = (
    lambda each: replace(each, max_devices=each.max_devices + 2),
    lambda each: replace(each, max_devices_per_user=each.max_devices_per_user + 2),
    lambda each: replace(each, guaranteed=each.guaranteed + 1),
    lambda each: replace(each, weight=each.weight * 2),
    lambda each: replace(each, borrowing=None if each.borrowing is None else each.borrowing + 1),
    lambda each: replace(each, borrowing=None),
)
FLAT = {"cs101": None, "math": None, "lab": None}
TREE = {"cs": None, "cs101": "cs", "cs102": "cs", "math": None}


@st.composite
def crowds(draw: st.DrawFn, parents: Mapping[str, str | None], running: int) -> Snapshot:
    """Requests for one device each, with equal limits; up to so many run already.

    All of them may be stopped, or none: what others are guaranteed limits those that may not.
    """
    preemptible = draw(st.booleans())
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
        )
        for name, parent in parents.items()
    )
    queue = tuple(
        replace(
            waiting(
                f"r{number}",
                age=draw(st.integers(0, 9)),
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([*parents])),
            ),
            preemptible=preemptible,
        )
        for number in range(draw(st.integers(1, 12)))
    )
    holdings = tuple(
        replace(
            holding(
                f"run{number}",
                device.id,
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([*parents])),
                ends_in=HOUR,
            ),
            preemptible=preemptible,
        )
        for number, device in enumerate(devices[: draw(st.integers(0, running))])
    )
    return Snapshot(devices=devices, groups=groups, waiting=queue, holdings=holdings)


def check_larger(snapshot: Snapshot, name: str, larger: Callable[[Group], Group]) -> None:
    """A larger quota never delays its owner's group: as many of it and of those below start."""
    groups = {each.name: each for each in snapshot.groups}
    changed = replace(
        snapshot,
        groups=tuple(larger(each) if each.name == name else each for each in snapshot.groups),
    )
    own = {each.id for each in snapshot.waiting if is_below(each.group, name, groups)}

    def starts(asked: Snapshot) -> int:
        return sum(start.request_id in own for start in decide(asked, NOW).starts)

    assert starts(changed) >= starts(snapshot)


def check_larger_in(parents: Mapping[str, str | None], running: int, examples: int) -> None:
    crowd, name = crowds(parents, running), st.sampled_from([*parents])
    settings(max_examples=examples, suppress_health_check=SELDOM)(
        given(crowd, name, st.sampled_from(LARGER))(check_larger)
    )()


@pytest.mark.parametrize("parents", [FLAT, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("running", [0, 4], ids=["nothing runs", "some run"])
def test_a_larger_quota_never_delays_its_owners_group(
    parents: Mapping[str, str | None], running: int
) -> None:
    check_larger_in(parents, running, 60)


@pytest.mark.slow
@pytest.mark.parametrize("parents", [FLAT, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("running", [0, 4], ids=["nothing runs", "some run"])
def test_thousands_of_larger_quotas(parents: Mapping[str, str | None], running: int) -> None:
    check_larger_in(parents, running, 3000)
