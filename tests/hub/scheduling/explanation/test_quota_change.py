"""Previews of quota changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.explanation.quota_change import consequences
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    Group,
    Kind,
    PendingRequest,
    Snapshot,
)

NOW = 1000.0
CS = Group(name="cs", max_devices=8, max_devices_per_user=8)
CS101 = Group(name="cs101", parent="cs", max_devices=4, max_devices_per_user=4)
DEVICES = tuple(
    Device(id=f"D{i}", node="n", index=i, model="H200", memory_bytes=1) for i in range(6)
)


def allocation(owner: str, *devices: str) -> Allocation:
    return Allocation(
        request_id=f"r-{owner}", owner=owner, group="cs101", devices=devices, since=0, until=9000
    )


def pending(name: str, devices: int) -> PendingRequest:
    return PendingRequest(
        id=name,
        kind=Kind.JOB,
        owner="ben",
        group="cs101",
        devices=devices,
        seconds=60,
        submitted_at=1,
    )


FOUR_HELD = Snapshot(
    devices=DEVICES, groups=(CS, CS101), allocations=(allocation("ada", "D0", "D1", "D2", "D3"),)
)


def test_a_lowered_maximum_stops_nothing_and_names_the_users_above_it() -> None:
    lowered = replace(CS101, max_devices=2, max_devices_per_user=2)
    assert consequences(lowered, FOUR_HELD, NOW) == (
        "cs101 holds 4 devices, above the new maximum of 2: nothing is stopped, "
        "nothing new starts.",
        "ada holds more than the 2 devices of one member: nothing is stopped, "
        "nothing new starts for them.",
    )


def test_queued_requests_that_could_never_start_are_counted() -> None:
    queue = tuple(pending(f"w{i}", 3) for i in range(3))
    snapshot = replace(FOUR_HELD, pending=queue, allocations=())
    assert "3 queued requests could never start." in consequences(
        replace(CS101, max_devices=2), snapshot, NOW
    )


def test_a_raised_maximum_starts_queued_requests_and_frees_stuck_ones() -> None:
    low = replace(CS101, max_devices=1)
    snapshot = Snapshot(devices=DEVICES, groups=(CS, low), pending=(pending("w", 2),))
    assert consequences(CS101, snapshot, NOW) == (
        "1 queued request that could never start could start again.",
        "1 queued request would start at once.",
    )


def test_limits_above_and_below_are_named() -> None:
    assert consequences(replace(CS101, max_devices=10), FOUR_HELD, NOW) == (
        "cs, above it, allows 8 devices at one time: cs101 never holds more.",
    )
    assert consequences(replace(CS, max_devices=3), replace(FOUR_HELD, allocations=()), NOW) == (
        "cs101, below it, may hold 4 by its own limits, and 3 by these.",
    )
    lends_nothing = replace(CS, guaranteed=1, borrowing=0)
    assert consequences(lends_nothing, replace(FOUR_HELD, allocations=()), NOW) == (
        "cs101, below it, may hold 4 by its own limits, and 1 by these.",
    )


def test_a_session_that_others_guarantees_shut_out_is_counted() -> None:
    math = Group(name="math", parent="cs", max_devices=8, max_devices_per_user=8)
    session = replace(pending("s", 3), kind=Kind.SESSION)
    snapshot = Snapshot(devices=DEVICES, groups=(CS, CS101, math), pending=(session,))
    assert consequences(replace(math, guaranteed=4), snapshot, NOW) == (
        "1 queued request could never start.",
    )


def test_a_shorter_time_is_for_new_requests() -> None:
    assert consequences(replace(CS101, max_seconds=3600), FOUR_HELD, NOW) == (
        "New requests may ask for 1 hour at most; queued and running requests keep their "
        "time limits.",
    )


def test_a_new_group_and_no_change_at_all() -> None:
    assert consequences(Group(name="lab", max_devices=1), FOUR_HELD, NOW) == (
        "A new group: it has no queued or running requests yet.",
    )
    assert consequences(CS101, FOUR_HELD, NOW) == ("Nothing changes.",)


GUARANTEED = replace(CS, guaranteed=4)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (replace(CS101, guaranteed=4), ()),
        (replace(CS101, guaranteed=5), ("cs101 is guaranteed 5 devices and may hold 4: ",)),
        (replace(CS101, guaranteed=3), ("The groups below cs are guaranteed 5 devices together",)),
        (
            replace(CS, guaranteed=7),
            ("All groups together are guaranteed 7 devices; the pool has",),
        ),
        (replace(CS, guaranteed=1), ("The groups below cs are guaranteed 2 devices together",)),
    ],
)
def test_guarantees_that_cannot_all_be_kept_are_said(after: Group, said: tuple[str, ...]) -> None:
    beside = Group(name="cs102", parent="cs", max_devices=8, guaranteed=2)
    groups = (GUARANTEED, CS101, *((beside,) if after != replace(CS101, guaranteed=4) else ()))
    if after.guaranteed == 5:
        groups = (replace(CS, guaranteed=6), CS101)
    found = consequences(after, replace(FOUR_HELD, groups=groups, allocations=()), NOW)
    odd = [sentence for sentence in found if "guaranteed" in sentence]
    assert len(odd) == len(said)
    assert all(one.startswith(begin) for one, begin in zip(odd, said, strict=True))
