"""What two snapshots that differ have in common: by order only, or by a quota that is larger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle import decide
from carrel.hub.scheduling.model import Group, Snapshot

from . import rich
from .values import NOW, group, node, waiting

T = TypeVar("T")


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
