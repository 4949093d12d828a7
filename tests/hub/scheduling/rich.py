"""Strategies for snapshots with all features of the policy, in small numbers so that rules meet."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from carrel.hub.scheduling.model.learned_order import LARGEST_WEIGHT, WEIGHTS, LearnedOrder
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Arrangement,
    BudgetBalance,
    DecayedUsage,
    Device,
    GangRole,
    Group,
    Kind,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Share,
    Snapshot,
)
from carrel.hub.scheduling.placement import free_devices

from .strategies import MODELS, OWNERS, switched
from .values import NOW, group, node

NAMES = ("cs", "cs101", "cs102", "math", "math1")
PARENTS = {"uni": None, "cs": "uni", "cs101": "cs", "cs102": "cs", "math": "uni", "math1": "math"}
BUDGETED = ("uni", "cs", "cs101", "math")
MINUTE = 60.0
HALF = 1 << 36
"""Bytes: half the memory of a device."""

minutes = st.integers(1, 60).map(lambda n: n * 10 * MINUTE)
maybe_minutes = st.one_of(st.none(), minutes)


def often(usual: object, *other: object) -> st.SearchStrategy[object]:
    """Mostly draw the usual value, so that several unusual ones seldom coincide."""
    return st.sampled_from((*(6 * (usual,)), *other))


@st.composite
def trees(draw: st.DrawFn) -> tuple[Group, ...]:
    return tuple(
        Group(
            name=name,
            parent=parent,
            max_devices=draw(often(12, 8, 4, 3, 2)),  # type: ignore[arg-type]
            max_devices_per_user=draw(often(12, 8, 4, 2)),  # type: ignore[arg-type]
            guaranteed=draw(st.sampled_from((0, 0, 0, 1, 2, 3))),
            borrowing=draw(often(None, 0, 1, 4)),  # type: ignore[arg-type]
            lending=draw(often(None, 0, 1)),  # type: ignore[arg-type]
            weight=draw(st.sampled_from((1.0, 1.0, 2.0, 0.5))),
            models=draw(often(None, frozenset({"A100"}), frozenset(MODELS))),  # type: ignore[arg-type]
            max_sessions=draw(often(None, 1, 2)),  # type: ignore[arg-type]
            sessions_borrow=draw(st.booleans()),
        )
        for name, parent in PARENTS.items()
    )


def shares() -> st.SearchStrategy[Share]:
    return st.builds(
        Share,
        compute=st.sampled_from((0.25, 0.5, 0.1)),
        memory_bytes=st.sampled_from((0, HALF // 2, HALF, HALF + 1)),
    )


@st.composite
def gangs(draw: st.DrawFn) -> tuple[GangRole, ...]:
    """Draw one or two roles; most could use one more member than their minimum."""
    return tuple(
        GangRole(name=name, devices=draw(st.integers(1, 2)), wanted=least + more, minimum=least)
        for name in draw(st.sampled_from((("worker",), ("worker",), ("leader", "worker"))))
        for least, more in [(draw(st.integers(1, 2)), draw(st.integers(0, 1)))]
    )


@st.composite
def requests(draw: st.DrawFn, name: str) -> PendingRequest:
    kind = draw(st.sampled_from((Kind.JOB, Kind.JOB, Kind.SESSION)))
    form = draw(st.sampled_from(("whole", "whole", "whole", "gang", "share")))
    gang: tuple[GangRole, ...] = ()
    devices = draw(st.sampled_from((1, 1, 1, 1, 2, 2, 3, 4, 0))) if form == "whole" else 1
    if form == "gang":
        gang = draw(gangs())
        devices = sum(role.devices * role.wanted for role in gang)
    return PendingRequest(
        id=name,
        kind=kind,
        owner=draw(st.sampled_from(OWNERS)),
        group=draw(st.sampled_from((*(4 * NAMES), "unknown"))),
        devices=devices,
        seconds=draw(minutes),
        submitted_at=NOW - draw(st.integers(0, 300)) * MINUTE,
        model=draw(often(None, *MODELS)),
        priority=draw(st.sampled_from((PriorityClass.NORMAL, *PriorityClass))),
        expected=draw(maybe_minutes),
        done=float(draw(st.sampled_from((0, 0, 600)))),
        preemptible=kind is Kind.JOB and draw(st.sampled_from((True, True, False))),
        deadline=draw(often(None, NOW + 3600, NOW + 7200, NOW)),  # type: ignore[arg-type]
        gang=gang,
        arrangement=draw(st.sampled_from(Arrangement)),
        share=draw(shares()) if form == "share" else None,
        expedited=draw(often(False, True)),  # type: ignore[arg-type]
        not_before=draw(often(None, NOW - 5, NOW + 30, NOW + 1800)),  # type: ignore[arg-type]
        moved_for=draw(often("", "", "wait0" * (name != "wait0"), "gone")),  # type: ignore[arg-type]
    )


@st.composite
def allocations(draw: st.DrawFn, devices: tuple[Device, ...]) -> tuple[Allocation, ...]:
    """Draw holders of whole devices, and of shares that add up to at most the device."""
    free = list(draw(st.permutations(devices)))
    lent: dict[Device, tuple[Share, ...]] = {}
    found = []
    for number in range(draw(st.integers(0, 8))):
        share = draw(st.one_of(st.none(), st.none(), shares()))
        if share is None:
            size = draw(st.sampled_from((1, 1, 2, 2, 3, 4, 0)))
            held, free = tuple(free[:size]), free[size:]
        else:
            beside = [each for each in lent if free_devices.fits(each, (*lent[each], share))]
            joins = draw(st.booleans())
            held = tuple((beside if beside and joins else free)[:1])
            lent |= {each: (*lent.get(each, ()), share) for each in held}
            free = [each for each in free if each not in held]
        kind = draw(st.sampled_from((Kind.JOB, Kind.JOB, Kind.SESSION)))
        since = NOW - draw(st.integers(1, 300)) * MINUTE
        found.append(
            Allocation(
                request_id=f"run{number}",
                owner=draw(st.sampled_from(OWNERS)),
                group=draw(st.sampled_from((*(4 * NAMES), "unknown"))),
                devices=tuple(device.id for device in held),
                since=since,
                until=since + draw(minutes),
                kind=kind,
                priority=draw(st.sampled_from((PriorityClass.NORMAL, *PriorityClass))),
                preemptible=kind is Kind.JOB and draw(st.sampled_from((True, True, False))),
                expected=draw(maybe_minutes),
                saved_at=draw(st.sampled_from((None, NOW - MINUTE))),
                leaving=draw(often(False, False, True)),  # type: ignore[arg-type]
                share=share if held else None,
            )
        )
    return tuple(found)


@st.composite
def reservations(draw: st.DrawFn) -> tuple[ReservedSpan, ...]:
    def occurrence(number: int) -> ReservedSpan:
        starts_at = NOW + draw(st.integers(-6, 12)) * 10 * MINUTE
        return ReservedSpan(
            id=f"class{number}",
            group=draw(st.sampled_from(NAMES)),
            devices=draw(st.integers(1, 4)),
            starts_at=starts_at,
            ends_at=starts_at + draw(minutes),
        )

    return tuple(occurrence(number) for number in range(draw(st.sampled_from((0, 0, 1, 2)))))


@st.composite
def budgets(draw: st.DrawFn) -> tuple[BudgetBalance, ...]:
    """Draw budgets for few groups; some are used up, or will be by running requests."""
    return tuple(
        BudgetBalance(
            group=name,
            budget=9000.0,
            used=draw(st.sampled_from((0.0, 6000.0, 9000.0))),
            running=draw(st.sampled_from((0.0, 2400.0))),
        )
        for name in BUDGETED
        if draw(often(False, True))
    )


def _learned_order(seed: int, largest: float) -> LearnedOrder:
    draw = Random(seed)  # noqa: S311  # a repeatable example, no secret
    weights = (
        draw.choice((draw.uniform(-largest, largest), 0.0, largest, -largest))
        for _ in range(WEIGHTS)
    )
    return LearnedOrder(name="drawn", weights=tuple(weights))


learned_orders = st.builds(
    _learned_order, st.integers(0, 1000), st.sampled_from((1.0, 8.0, LARGEST_WEIGHT))
)
"""Small, large and extreme weights."""
maybe_learned = st.one_of(st.none(), learned_orders)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    devices = draw(switched)
    return Snapshot(
        devices=devices,
        groups=draw(trees()),
        pending=tuple(draw(requests(f"wait{n}")) for n in range(draw(st.integers(4, 16)))),
        allocations=draw(allocations(devices)),
        takes_work=draw(often(True, False)),  # type: ignore[arg-type]
        use=tuple(
            DecayedUsage(group=group, owner=owner, device_seconds=draw(st.integers(0, 9)) * 1800.0)
            for group in NAMES
            for owner in OWNERS
            if draw(st.booleans())
        ),
        reserved=draw(reservations()),
        budgets=draw(budgets()),
        learned_order=draw(maybe_learned),
    )


@st.composite
def in_pieces(draw: st.DrawFn) -> Snapshot:
    """Draw small work on all nodes, saved a minute ago, and a request of another group for a whole
    node; guarantees fit the pool, and every group has one request."""
    count, size = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    devices = tuple(each for name in "abcd"[:count] for each in node(name, size))
    names = NAMES[: draw(st.integers(2, 5))]
    owned = [draw(st.sampled_from((*names, ""))) for _ in devices]
    groups = tuple(replace(group(name), guaranteed=owned.count(name)) for name in names)
    order = draw(st.permutations([device.id for device in devices]))
    held = tuple(
        Allocation(
            request_id=f"run{number}",
            owner=draw(st.sampled_from(OWNERS)),
            group=draw(st.sampled_from(names[1:])),
            devices=(device,),
            since=NOW - draw(minutes),
            until=NOW + draw(minutes),
            preemptible=draw(often(True, False)),  # type: ignore[arg-type]
            saved_at=NOW - MINUTE,
        )
        for number, device in enumerate(order[: draw(st.integers(1, len(order)))])
    )
    asked = tuple(
        replace(
            draw(requests(f"wait{number}")),
            group=name,
            devices=draw(st.sampled_from((1, 2, size))) if number else size,
            model=None,
            gang=(),
            share=None,
            priority=PriorityClass.NORMAL,
            moved_for="",
        )
        for number, name in enumerate(names[: draw(st.integers(1, len(names)))])
    )
    return Snapshot(
        devices=devices,
        groups=groups,
        pending=asked,
        allocations=held,
        learned_order=draw(maybe_learned),
    )
