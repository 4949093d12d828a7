"""Convert between rows and groups, devices and marks; the only module that uses their columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from ....scheduling.model.snapshot import (
    Budget,
    Device,
    DeviceFile,
    Group,
    Health,
    Mark,
    MarkKind,
    Period,
)
from ...rules.conversions import with_marks
from .core import devices, groups, marks

# Every page and cycle runs these queries: they are built once.
_GROUPS = select(groups).where(groups.c.removed_at.is_(None))
_MARKS, _DEVICES = select(marks), select(devices)


def group_columns(group: Group) -> dict[str, object]:
    return {
        "name": group.name,
        "parent": group.parent,
        "max_devices": group.max_devices,
        "max_devices_per_user": group.max_devices_per_user,
        "max_seconds": group.max_seconds,
        "idle_seconds": group.idle_seconds,
        "guaranteed": group.guaranteed,
        "borrowing": group.borrowing,
        "lending": group.lending,
        "weight": group.weight,
        "models": None if group.models is None else sorted(group.models),
        "max_sessions": group.max_sessions,
        "sessions_borrow": group.sessions_borrow,
        "budget_seconds": None if group.budget is None else group.budget.device_seconds,
        "budget_period": None if group.budget is None else str(group.budget.period),
        "programs": group.programs,
        "removed_at": None,
    }


def device_columns(device: Device) -> dict[str, object]:
    return {
        "id": device.id,
        "node": device.node,
        "position": device.index,
        "model": device.model,
        "memory_bytes": device.memory_bytes,
        "simulated": device.simulated,
        "driver": device.driver,
        "files": [[file.path, file.group] for file in device.files],
        "health": str(device.health),
        "why": device.why,
    }


def read_groups(connection: Connection) -> dict[str, Group]:
    """Return all groups that are not removed, sorted by name."""
    rows = connection.execute(_GROUPS).all()
    # Sorted here: databases order text by their own locale.
    return {
        row.name: Group(
            name=row.name,
            parent=row.parent,
            max_devices=row.max_devices,
            max_devices_per_user=row.max_devices_per_user,
            max_seconds=row.max_seconds,
            idle_seconds=row.idle_seconds,
            guaranteed=row.guaranteed,
            borrowing=row.borrowing,
            lending=row.lending,
            weight=row.weight,
            models=None if row.models is None else frozenset(row.models),
            max_sessions=row.max_sessions,
            sessions_borrow=row.sessions_borrow,
            budget=None
            if row.budget_seconds is None
            else Budget(device_seconds=row.budget_seconds, period=Period(row.budget_period)),
            programs=row.programs,
        )
        for row in sorted(rows, key=lambda row: str(row.name))
    }


def read_marks(connection: Connection) -> tuple[Mark, ...]:
    """Return all marks, sorted by target and kind."""
    rows = connection.execute(_MARKS).all()
    return tuple(
        Mark(
            target=row.target,
            kind=MarkKind(row.kind),
            since=row.since,
            why=row.why,
            by=row.set_by,
            until=row.until,
        )
        for row in sorted(rows, key=lambda row: (str(row.target), str(row.kind)))
    )


def read_devices(connection: Connection, all_marks: Sequence[Mark]) -> dict[str, Device]:
    """Return all devices with their marks, sorted by node and index."""
    found = read_unmarked_devices(connection)
    return {name: with_marks(device, all_marks) for name, device in found.items()}


def read_unmarked_devices(connection: Connection) -> dict[str, Device]:
    """Return all devices without their marks, sorted by node and index."""
    rows = connection.execute(_DEVICES).all()
    return {
        row.id: Device(
            id=row.id,
            node=row.node,
            index=row.position,
            model=row.model,
            memory_bytes=row.memory_bytes,
            simulated=row.simulated,
            driver=row.driver,
            files=tuple(DeviceFile(path=path, group=group) for path, group in row.files),
            health=Health(row.health),
            why=row.why,
        )
        for row in sorted(rows, key=lambda row: (str(row.node), int(row.position), str(row.id)))
    }
