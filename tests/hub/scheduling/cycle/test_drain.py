"""No request starts on drained or quarantined devices and nodes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import (
    Device,
    Group,
    Health,
    Kind,
    Mark,
    MarkKind,
    PendingRequest,
    Snapshot,
)

from ..strategies import snapshots
from ..values import NOW

DEVICE = Device(id="D0", node="n", index=0, model="H200", memory_bytes=1)
KINDS = st.sets(st.sampled_from(list(MarkKind)))


def marked(device: Device, kinds: set[MarkKind]) -> Device:
    marks = tuple(Mark(target=device.id, kind=kind, since=0.0) for kind in sorted(kinds))
    return replace(device, marks=marks)


@given(snapshots(), st.data())
def test_no_marked_device_is_ever_granted(snapshot: Snapshot, data: st.DataObject) -> None:
    devices = tuple(marked(device, data.draw(KINDS)) for device in snapshot.devices)
    allowed = {device.id for device in devices if not device.marks}
    plan = decide(replace(snapshot, devices=devices), NOW)
    assert {name for start in plan.starts for name in start.devices} <= allowed


@given(snapshots())
def test_no_request_starts_while_all_nodes_are_drained(snapshot: Snapshot) -> None:
    devices = tuple(marked(device, {MarkKind.DRAIN}) for device in snapshot.devices)
    plan = decide(replace(snapshot, devices=devices, takes_work=False), NOW)
    assert plan.starts == ()
    assert {wait.request_id for wait in plan.waits} == {w.id for w in snapshot.pending}


@given(st.sampled_from(list(Health)), KINDS)
def test_only_healthy_devices_without_marks_are_granted(
    health: Health, kinds: set[MarkKind]
) -> None:
    device = replace(marked(DEVICE, kinds), health=health)
    assert device.schedulable == (health is Health.OK and not kinds)


def test_of_two_drains_the_earlier_end_counts() -> None:
    marks = tuple(
        Mark(target=target, kind=MarkKind.DRAIN, since=0.0, until=until)
        for target, until in (("D0", None), ("n", 50.0))
    )
    drain = replace(DEVICE, marks=marks).drain
    assert drain is not None
    assert drain.until == 50.0


def test_cpu_requests_wait_for_a_node() -> None:
    cpu = PendingRequest(
        id="w", kind=Kind.JOB, owner="ada", group="g", devices=0, seconds=1, submitted_at=0
    )
    drained = Snapshot(groups=(Group(name="g"),), pending=(cpu,), takes_work=False)
    assert [wait.reason for wait in decide(drained, NOW).waits] == [Reason.DRAINING]
