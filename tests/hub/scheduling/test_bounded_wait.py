"""No wait is longer than the work of the others: numbers for "nothing starves".

Why the bounds hold, whatever the order is:

- Anything that waits and could start in an empty pool never sees an empty pool: whoever is first
  would start in it. So from its submission to its start others hold devices, each of them once
  and for no longer than its time limit. The wait is at most the sum of these times.
- Where all ask for one device and no limit binds, all devices are busy for as long as somebody
  waits (Graham, "Bounds for certain multiprocessing anomalies", 1966). The wait is then at most
  the device-seconds of the others, divided by the number of devices.
- In a stream without end the others are those that may still go before it. Of one owner these
  are submitted within its own device-seconds over ``AGEING``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carrel.hub.scheduling.books import Books
from carrel.hub.scheduling.cycle import decide, in_order
from carrel.hub.scheduling.model import Holding, Snapshot, Waiting
from carrel.hub.scheduling.placement import Placement
from carrel.hub.scheduling.queues import AGEING
from carrel.hub.scheduling.running import holding_of

from . import rich
from .values import NOW, group, node, waiting

MINUTE = 60.0
offsets = st.integers(0, 30).map(lambda n: n * 10 * MINUTE)


def waits(snapshot: Snapshot, coming: Iterable[Waiting]) -> Mapping[str, float]:
    """How long each waits that starts, where everything runs to its time limit."""
    state, now = snapshot, NOW
    later = sorted(coming, key=lambda each: (each.submitted_at, each.id))
    found: dict[str, float] = {}
    while True:
        here = [each for each in later if each.submitted_at <= now]
        later = later[len(here) :]
        state = replace(state, waiting=(*state.waiting, *here))
        by_id = {request.id: request for request in state.waiting}
        begun: list[Holding] = []
        for start in decide(state, now).starts:
            request = by_id.pop(start.request_id)
            found[request.id] = now - request.submitted_at
            placed = Placement(devices=start.devices, share=request.share)
            begun.append(holding_of(request, placed, now=now))
        holdings = (*state.holdings, *begun)
        events = [*(each.until for each in holdings), *(each.submitted_at for each in later)]
        if not events:
            return found
        now = max(now, min(events))
        state = replace(
            state,
            waiting=tuple(by_id.values()),
            holdings=tuple(each for each in holdings if each.until > now),
        )


def starts_alone(request: Waiting, snapshot: Snapshot) -> bool:
    empty = replace(snapshot, holdings=(), waiting=(request,))
    return bool(decide(empty, request.submitted_at).starts)


@st.composite
def loads(draw: st.DrawFn) -> tuple[Snapshot, tuple[Waiting, ...]]:
    """A pool with what runs in it, and whoever comes in the next five hours."""
    snapshot = replace(draw(rich.snapshots()), reserved=(), budgets=())
    coming = tuple(
        replace(each, submitted_at=NOW + draw(offsets), deadline=None) for each in snapshot.waiting
    )
    return replace(snapshot, waiting=()), coming


def check_a_wait_is_no_longer_than_the_time_of_all_others(
    load: tuple[Snapshot, tuple[Waiting, ...]],
) -> None:
    snapshot, coming = load
    found = waits(snapshot, coming)
    held = sum(max(0.0, each.until - NOW) for each in snapshot.holdings if each.devices)
    for request in coming:
        if starts_alone(request, snapshot):
            others = sum(each.seconds for each in coming if each.devices and each is not request)
            assert found[request.id] <= held + others


def test_a_wait_is_no_longer_than_the_time_of_all_others() -> None:
    settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])(
        given(loads())(check_a_wait_is_no_longer_than_the_time_of_all_others)
    )()


@pytest.mark.slow
def test_thousands_of_loads() -> None:
    settings(max_examples=3000, suppress_health_check=[HealthCheck.too_slow])(
        given(loads())(check_a_wait_is_no_longer_than_the_time_of_all_others)
    )()


@st.composite
def streams(draw: st.DrawFn) -> tuple[Snapshot, tuple[Waiting, ...]]:
    """Requests for one device each, which no limit holds."""
    groups = (group("cs101"), group("math"), group("lab", parent="math"))
    coming = tuple(
        replace(
            waiting(
                f"r{number}",
                owner=draw(st.sampled_from(rich.OWNERS)),
                group=draw(st.sampled_from([each.name for each in groups])),
                seconds=draw(rich.minutes),
            ),
            submitted_at=NOW + draw(offsets),
            expected=draw(rich.maybe_minutes),
        )
        for number in range(draw(st.integers(1, 20)))
    )
    return Snapshot(devices=node("a", draw(st.integers(1, 4))), groups=groups), coming


@settings(max_examples=60)
@given(streams())
def test_one_device_each_waits_for_the_work_of_the_others_over_all_devices(
    load: tuple[Snapshot, tuple[Waiting, ...]],
) -> None:
    snapshot, coming = load
    found = waits(snapshot, coming)
    work = sum(each.seconds for each in coming)
    for request in coming:
        assert found[request.id] <= (work - request.seconds) / len(snapshot.devices)


@settings(max_examples=200)
@given(st.integers(1, 4), rich.minutes, rich.minutes, st.integers(0, 3), st.floats(0, 30 * 86400.0))
def test_who_comes_much_later_goes_before_nobody_of_the_same_owner(
    devices: int, seconds: float, shorter: float, fewer: int, later: float
) -> None:
    old = replace(waiting("old", devices, owner="ada", seconds=seconds), submitted_at=NOW)
    new = replace(
        waiting("new", max(1, devices - fewer), owner="ada", seconds=shorter),
        submitted_at=NOW + later,
    )
    queue = Snapshot(devices=node("a", 4), groups=(group(),), waiting=(new, old))
    first, _ = in_order(queue, Books(queue, NOW + later))
    longer, least = old.devices * old.seconds, new.devices * new.seconds
    if later > longer / AGEING + 1:
        assert first.id == "old"
    if least + AGEING * (later + 1) < longer:
        assert first.id == "new"
