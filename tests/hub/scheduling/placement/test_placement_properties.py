"""Placement against a naive reference: it finds what fits, and overcommits no device."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.model.snapshot import (
    Arrangement,
    Device,
    GangRole,
    PendingRequest,
    Share,
)
from carrel.hub.scheduling.placement.device_pool import DevicePool, Placement

from ..strategies import MODELS, switched
from ..values import pending

SIZES = (1, 2, 4)
"""Each divides the next one: packing is exact for these."""


@st.composite
def requests(draw: st.DrawFn) -> PendingRequest:
    model = draw(st.sampled_from((None, *MODELS)))
    kind = draw(st.sampled_from(("plain", "gang", "share")))
    if kind == "plain":
        return pending("r", draw(st.integers(1, 4)), model=model)
    if kind == "share":
        share = Share(
            compute=draw(st.sampled_from((0.1, 0.2, 0.25, 0.3, 0.5, 1.0))),
            memory_bytes=draw(st.integers(0, 4)) << 35,
        )
        return replace(pending("r", model=model), share=share)
    roles = tuple(
        GangRole(name=name, devices=size, wanted=least + more, minimum=least)
        for name in draw(st.sampled_from(("x", "xy")))
        for size, least, more in [
            (draw(st.sampled_from(SIZES)), draw(st.integers(1, 3)), draw(st.integers(0, 2)))
        ]
    )
    return replace(
        pending("r", sum(role.devices * role.wanted for role in roles), model=model),
        gang=roles,
        arrangement=draw(st.sampled_from((Arrangement.PACK, Arrangement.SPREAD))),
    )


class Naive:
    """A reference pool: a list of allocations, and placement by exhaustive search."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = [each for each in devices if each.schedulable]
        self.lent: list[Placement] = []

    def free(self, model: str | None) -> list[Device]:
        taken = {device for placed in self.lent for device in placed.devices}
        return [
            each for each in self.devices if each.id not in taken and model in (None, each.model)
        ]

    def remaining(self, model: str | None) -> dict[str, int]:
        return Counter(each.node for each in self.free(model))

    def fits(self, request: PendingRequest) -> bool:
        if request.share is not None:
            return any(
                self.has_room(device, request.share)
                for device in self.devices
                if request.model in (None, device.model)
            )
        if not request.gang:
            return max(self.remaining(request.model).values(), default=0) >= request.devices
        models = MODELS if request.model is None else (request.model,)
        least = [role.devices for role in request.gang for _ in range(role.minimum)]
        return any(laid_out(least, self.remaining(model), request.arrangement) for model in models)

    def has_room(self, device: Device, share: Share) -> bool:
        here = [placed.share for placed in self.lent if device.id in placed.devices]
        shares = [share, *(each for each in here if each)]
        return (
            None not in here
            and fsum(each.compute for each in shares) <= 1
            and sum(each.memory_bytes for each in shares) <= device.memory_bytes
        )


def laid_out(sizes: Sequence[int], remaining: dict[str, int], arrangement: Arrangement) -> bool:
    """Return whether any placement exists: every node is tried for every member."""
    if not sizes:
        return True
    size, *rest = sizes
    for node, room in remaining.items():
        left = room - size if arrangement is Arrangement.PACK else 0
        if room >= size and laid_out(rest, {**remaining, node: left}, arrangement):
            return True
    return False


def check(request: PendingRequest, placed: Placement, before: Naive) -> None:
    """Check that a placement has what was requested, of free devices."""
    by_id = {each.id: each for each in before.devices}
    got = [by_id[device] for device in placed.devices]
    models = {each.model for each in got}
    assert request.model is None or models == {request.model}
    if request.share is not None:
        assert placed == Placement(devices=(got[0].id,), share=request.share)
        assert before.has_room(got[0], request.share)
        return
    assert {each.id for each in got} <= {each.id for each in before.free(None)}
    assert len(set(placed.devices)) == len(placed.devices)
    if request.gang:
        check_gang(request, placed, got)
    else:
        remaining = before.remaining(request.model)
        enough = {node: room for node, room in remaining.items() if room >= request.devices}
        node = min(enough, key=lambda each: (enough[each], each))
        inside = [each for each in before.free(request.model) if each.node == node]
        assert got == sorted(inside, key=lambda each: each.index)[: request.devices]


def check_gang(request: PendingRequest, placed: Placement, got: list[Device]) -> None:
    nodes = []
    for role, count in zip(request.gang, placed.members, strict=True):
        assert role.minimum <= count <= role.wanted
        for _ in range(count):
            member, got = got[: role.devices], got[role.devices :]
            assert len({each.node for each in member}) == 1
            nodes.append(member[0].node)
    assert got == []
    if request.arrangement is Arrangement.SPREAD:
        assert len(nodes) == len(set(nodes))


def check_what_fits_is_placed_and_what_does_not_fit_is_not(
    devices: tuple[Device, ...], script: list[tuple[PendingRequest, int]]
) -> None:
    pool, naive, empty = DevicePool(devices, ()), Naive(devices), Naive(devices)
    for request, choice in script:
        assert pool.could_fit(request) == empty.fits(request)
        assert pool.fits(request) == naive.fits(request)
        placed = pool.take(request)
        assert (placed is not None) == naive.fits(request)
        if placed is not None:
            check(request, placed, naive)
            naive.lent.append(placed)
        if naive.lent and choice < 4:
            pool.release(naive.lent.pop(choice % len(naive.lent)))
        for model in (None, *MODELS):
            assert pool.free_count(model) == len(naive.free(model))
    for placed in naive.lent:
        pool.release(placed)
    assert pool.free_count() == pool.total_count() == len(naive.devices)


def check_a_copy_and_another_order_of_the_devices_change_nothing(
    devices: tuple[Device, ...], asked: list[PendingRequest]
) -> None:
    other = DevicePool(tuple(reversed(devices)), ()).copy()
    pool = DevicePool(devices, ())

    assert [pool.take(each) for each in asked] == [other.take(each) for each in asked]


def check_a_gang_gets_all_that_it_would_like_where_that_fits(
    devices: tuple[Device, ...], asked: list[PendingRequest]
) -> None:
    pool = DevicePool(devices, ())
    for request in asked:
        whole = tuple(replace(role, minimum=role.wanted) for role in request.gang)
        all_fit = pool.fits(replace(request, gang=whole))
        placed = pool.take(request)
        if request.gang and placed is not None:
            got_all = placed.members == tuple(role.wanted for role in request.gang)
            assert got_all == all_fit


def check_a_packed_gang_goes_on_one_node_or_one_switch_where_it_fits_there(
    devices: tuple[Device, ...], request: PendingRequest
) -> None:
    placed = DevicePool(devices, ()).take(request)
    if placed is None or not request.gang or request.arrangement is Arrangement.SPREAD:
        return
    by_id = {each.id: each for each in devices}
    got = [by_id[device] for device in placed.devices]
    one = replace(pending("r", len(got), model=got[0].model))
    if DevicePool([each for each in devices if each.model == got[0].model], ()).fits(one):
        assert len({each.node for each in got}) == 1
    at = defaultdict(list)
    for device in devices:
        at[device.switch].append(device)
    sizes = replace(request, gang=_as_given(request, placed))
    alone = any(DevicePool(inside, ()).fits(sizes) for switch, inside in at.items() if switch)
    if alone and len({each.node for each in got}) > 1:
        assert len({each.switch for each in got}) == 1


def _as_given(request: PendingRequest, placed: Placement) -> tuple[GangRole, ...]:
    return tuple(
        replace(role, wanted=count, minimum=count)
        for role, count in zip(request.gang, placed.members, strict=True)
    )


SEVERAL = (switched, st.lists(requests(), max_size=8))
CHECKS: Mapping[Callable[..., None], tuple[st.SearchStrategy[object], ...]] = {
    check_what_fits_is_placed_and_what_does_not_fit_is_not: (
        switched,
        st.lists(st.tuples(requests(), st.integers(0, 9)), max_size=14),
    ),
    check_a_copy_and_another_order_of_the_devices_change_nothing: SEVERAL,
    check_a_gang_gets_all_that_it_would_like_where_that_fits: SEVERAL,
    check_a_packed_gang_goes_on_one_node_or_one_switch_where_it_fits_there: (switched, requests()),
}
IDS = [each.__name__.removeprefix("check_") for each in CHECKS]


@pytest.mark.hypothesis
@pytest.mark.parametrize("holds", CHECKS, ids=IDS)
def test_every_pool(holds: Callable[..., None]) -> None:
    given(*CHECKS[holds])(holds)()
