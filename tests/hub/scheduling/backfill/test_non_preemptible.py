"""Non-preemptible work leaves every group able to reclaim its guaranteed quota."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import HealthCheck, given

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import Allocation, Group, Health, Kind, Snapshot

from .. import rich
from ..outcomes import started, weight
from ..values import NOW, group, node, pending

SELDOM = (HealthCheck.filter_too_much, HealthCheck.too_slow)


def claimed(groups: Iterable[Group], allocations: Iterable[Allocation]) -> float:
    """Return the devices that groups claim: their guarantees, or their non-preemptible work if that
    is more."""
    known = tuple(groups)
    permanent = [each for each in allocations if not each.preemptible]

    def of(group: Group) -> float:
        own = sum(weight(each) for each in permanent if each.group == group.name)
        below = sum(of(each) for each in known if each.parent == group.name)
        return max(group.guaranteed, own + below)

    return sum(of(each) for each in known if each.parent is None)


def check_guarantees_can_be_reclaimed(snapshot: Snapshot) -> None:
    """Check that non-preemptible starts leave all guarantees reclaimable, or as much as before;
    except in groups whose sessions may borrow."""
    devices = tuple(replace(each, health=Health.OK) for each in snapshot.devices)
    snapshot = replace(snapshot, devices=devices)
    groups = {each.name: each for each in snapshot.groups}
    held = list(snapshot.allocations)
    for each in started(snapshot, decide(snapshot, NOW)):
        before = claimed(snapshot.groups, held)
        held.append(each)
        if not each.preemptible and not groups[each.group].sessions_borrow:
            most = max(len(devices), before)
            assert claimed(snapshot.groups, held) <= most + 1e-9


@given(rich.snapshots())
def test_guarantees_can_be_reclaimed(snapshot: Snapshot) -> None:
    check_guarantees_can_be_reclaimed(snapshot)


@given(rich.in_pieces())
def test_guaranteed_quota_can_be_reclaimed_when_free_devices_are_fragmented(
    snapshot: Snapshot,
) -> None:
    check_guarantees_can_be_reclaimed(snapshot)


def test_guaranteed_quota_of_a_lab_is_not_non_preemptible_quota_of_its_department() -> None:
    """cs is guaranteed three for its lab. Of six devices, two of which are math's, one is left."""
    sessions = tuple(
        replace(pending(f"s{number}", group="cs"), kind=Kind.SESSION) for number in range(2)
    )
    snapshot = Snapshot(
        devices=node("a", 6),
        groups=(
            group("cs"),
            replace(group("cs102", parent="cs"), guaranteed=3),
            replace(group("math"), guaranteed=2),
        ),
        pending=sessions,
    )
    assert [start.request_id for start in decide(snapshot, NOW).starts] == ["s0"]
    check_guarantees_can_be_reclaimed(snapshot)
