"""Groups, teachers and devices; functions run inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update

from ...scheduling.model.snapshot import Device, Group, Health
from ..rules import checks, conversions
from .tables.core import devices, group_teachers, groups, lease_devices, leases, marks, nodes
from .tables.pool_rows import device_columns, group_columns, read_groups, read_unmarked_devices
from .upserts import put_row


def put_group(connection: Connection, group: Group) -> None:
    checks.check_group(group, read_groups(connection))
    put_row(connection, groups, group_columns(group), "name")


def group(connection: Connection, name: str) -> Group:
    known = read_groups(connection)
    if name not in known:
        raise checks.no_group(name, known)
    return known[name]


def set_teachers(connection: Connection, name: str, teachers: Sequence[str]) -> None:
    group(connection, name)
    connection.execute(delete(group_teachers).where(group_teachers.c.group_name == name))
    rows = [{"group_name": name, "person": person} for person in sorted(set(teachers))]
    if rows:
        connection.execute(insert(group_teachers), rows)


def teachers(connection: Connection, name: str) -> tuple[str, ...]:
    query = select(group_teachers.c.person).where(group_teachers.c.group_name == name)
    return tuple(sorted(connection.scalars(query)))


def taught_by(connection: Connection, person: str) -> frozenset[str]:
    query = select(group_teachers.c.group_name).where(group_teachers.c.person == person)
    return frozenset(connection.scalars(query))


def sync_devices(connection: Connection, node: str, reported: Sequence[Device]) -> None:
    if connection.scalar(select(nodes.c.name).where(nodes.c.name == node)) is None:
        connection.execute(insert(nodes).values(name=node))
    stored = read_unmarked_devices(connection)
    change = conversions.inventory_change(node, reported, stored, taken(connection))
    for device in change.put:
        columns = device_columns(device)
        if device.id in stored:
            connection.execute(update(devices).where(devices.c.id == device.id).values(columns))
        else:
            connection.execute(insert(devices).values(columns))
    if change.remove:
        connection.execute(delete(devices).where(devices.c.id.in_(change.remove)))


def remove_node(connection: Connection, name: str) -> None:
    if connection.scalar(select(nodes.c.name).where(nodes.c.name == name)) is None:
        raise checks.no_node(name)
    held = select(leases.c.id).where(leases.c.node == name, leases.c.released_at.is_(None))
    if connection.scalar(held.limit(1)) is not None:
        raise checks.node_in_use(name)
    own = select(devices.c.id).where(devices.c.node == name)
    connection.execute(delete(marks).where(marks.c.target.in_(own) | (marks.c.target == name)))
    connection.execute(delete(devices).where(devices.c.node == name))
    connection.execute(delete(nodes).where(nodes.c.name == name))


def set_health(connection: Connection, device_id: str, health: Health, why: str) -> None:
    changed = connection.execute(
        update(devices).where(devices.c.id == device_id).values(health=str(health), why=why)
    )
    if not changed.rowcount:
        raise checks.no_device(device_id)


def taken(connection: Connection) -> frozenset[str]:
    """Return the ids of the devices of leases that are not released."""
    query = select(lease_devices.c.device_id).where(lease_devices.c.released_at.is_(None))
    return frozenset(connection.scalars(query))
