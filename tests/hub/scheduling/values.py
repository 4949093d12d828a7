"""Short constructors of values of the core, with defaults for tests."""

from __future__ import annotations

from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    Group,
    Health,
    Kind,
    PendingRequest,
    PriorityClass,
)

NOW = 10_000.0
HOUR = 3600.0


def node(
    name: str, count: int, *, model: str = "H200", health: Health = Health.OK
) -> tuple[Device, ...]:
    """Return the devices ``NAME0``, ``NAME1``, … of one node."""
    return tuple(device(f"{name}{index}", model=model, health=health) for index in range(count))


def device(device_id: str, *, model: str = "H200", health: Health = Health.OK) -> Device:
    """``a1`` is device 1 of node ``a``."""
    return Device(
        id=device_id,
        node=device_id[:1],
        index=int(device_id[1:]),
        model=model,
        memory_bytes=1 << 37,
        health=health,
    )


def group(
    name: str = "cs101",
    *,
    maximum: int = 100,
    per_user: int = 100,
    parent: str | None = None,
    seconds: int = 8 * 3600,
) -> Group:
    return Group(
        name=name,
        parent=parent,
        max_devices=maximum,
        max_devices_per_user=per_user,
        max_seconds=seconds,
    )


def pending(
    request_id: str,
    devices: int = 1,
    *,
    age: float = 0.0,
    owner: str = "",
    group: str = "cs101",
    seconds: float = HOUR,
    model: str | None = None,
    priority: PriorityClass = PriorityClass.NORMAL,
) -> PendingRequest:
    """Return a request that was submitted ``age`` seconds ago; its owner has its name."""
    return PendingRequest(
        id=request_id,
        kind=Kind.JOB,
        owner=owner or f"owner of {request_id}",
        group=group,
        devices=devices,
        seconds=seconds,
        submitted_at=NOW - age,
        model=model,
        priority=priority,
    )


def allocation(
    request_id: str,
    *devices: str,
    owner: str = "",
    group: str = "cs101",
    ends_in: float = HOUR,
) -> Allocation:
    return Allocation(
        request_id=request_id,
        owner=owner or f"owner of {request_id}",
        group=group,
        devices=devices,
        since=NOW - HOUR,
        until=NOW + ends_in,
    )
