"""Hypothesis strategies for snapshots: small pools and trees with contention."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    Group,
    Health,
    Kind,
    PendingRequest,
    PriorityClass,
    Snapshot,
)

from .values import NOW

MODELS = ("A100", "H200")
GROUPS = ("cs101", "math", "cs101", "math", "cs", "unknown")
SIZES = (1, 1, 1, 2, 2, 3, 4, 0)
MAXIMA = (8, 6, 4, 3, 2, 12, 0)
MAXIMA_PER_USER = (8, 4, 3, 2, 1, 12, 0)
HEALTH = (*(4 * (Health.OK,)), *Health)
OWNERS = ("ada", "bob", "cy")
SPANS = st.integers(1, 8).map(lambda n: n * 600.0)


@st.composite
def pools(draw: st.DrawFn) -> tuple[Device, ...]:
    return tuple(
        Device(
            id=f"{node}{index}",
            node=node,
            index=index,
            model=draw(st.sampled_from(MODELS)),
            memory_bytes=1 << 37,
            health=draw(st.sampled_from(HEALTH)),
        )
        for node in ("a", "b", "c")
        for index in range(draw(st.sampled_from((4, 3, 2, 1, 0))))
    )


switched = st.builds(
    lambda devices, names: tuple(replace(each, switch=names[each.node]) for each in devices),
    pools(),
    st.fixed_dictionaries(dict.fromkeys("abc", st.sampled_from(("", "s", "t")))),
)
"""The same with nodes on switches, or on none that anybody knows."""


@st.composite
def trees(draw: st.DrawFn) -> tuple[Group, ...]:
    """Draw groups, with ``cs101`` below ``cs``; each may be missing, the parent too."""
    parents = {"cs": None, "cs101": "cs", "math": None}
    known = tuple(parents)
    names = draw(st.sampled_from((known, known, known, ("cs101", "math"))))
    return tuple(
        Group(
            name=name,
            parent=parents[name],
            max_devices=draw(st.sampled_from(MAXIMA)),
            max_devices_per_user=draw(st.sampled_from(MAXIMA_PER_USER)),
        )
        for name in names
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    devices = draw(pools())
    free = list(draw(st.permutations([device.id for device in devices])))
    allocations = []
    for number in range(draw(st.integers(0, 4))):
        size = draw(st.integers(0, 2))
        held, free = tuple(free[:size]), free[size:]
        allocations.append(
            Allocation(
                request_id=f"run{number}",
                owner=draw(st.sampled_from(OWNERS)),
                group=draw(st.sampled_from(GROUPS)),
                devices=held,
                since=NOW - 3600,
                until=NOW + draw(st.integers(-2, 8)) * 600.0,
            )
        )
    pending = tuple(
        PendingRequest(
            id=f"wait{number}",
            kind=draw(st.sampled_from(Kind)),
            owner=draw(st.sampled_from(OWNERS)),
            group=draw(st.sampled_from(GROUPS)),
            devices=draw(st.sampled_from(SIZES)),
            seconds=draw(SPANS),
            submitted_at=NOW - draw(st.integers(0, 5)),
            model=draw(st.sampled_from((None, None, None, *MODELS))),
            priority=draw(st.sampled_from(PriorityClass)),
        )
        for number in range(draw(st.integers(2, 12)))
    )
    return Snapshot(
        devices=devices,
        groups=draw(trees()),
        pending=pending,
        allocations=tuple(allocations),
    )
