"""Image pins of groups, and the requests that use an image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import date

from sqlalchemy import Connection, delete, insert, or_, select

from ...records.audit import AuditEntry
from ...records.images import ImageUse, Pin
from .marks_and_audit import record_change
from .pool import group
from .tables.core import pins, requests
from .transactions import Transactions


class SqlImagePins:
    """The part of ``SqlStore`` for image pins; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def pins(self) -> tuple[Pin, ...]:
        return self._transactions.read(read_pins)

    def put_pin(self, pin: Pin, *, change: AuditEntry | None = None) -> None:
        self._transactions.write(lambda c: put_pin(c, pin, change))

    def remove_pin(self, group: str, image: str, *, change: AuditEntry | None = None) -> bool:
        return self._transactions.write(lambda c: remove_pin(c, group, image, change))

    def image_uses(self) -> Mapping[str, tuple[ImageUse, ...]]:
        return self._transactions.read(image_uses)


def read_pins(connection: Connection) -> tuple[Pin, ...]:
    rows = connection.execute(select(pins)).all()
    found = (
        Pin(
            group=row.group_name,
            image=row.image,
            digest=row.digest,
            until=None if row.until is None else date.fromisoformat(row.until),
            set_by=row.set_by,
            set_at=row.set_at,
        )
        for row in rows
    )
    # Sorted here, because databases differ in how they sort names with hyphens.
    return tuple(sorted(found, key=lambda pin: (pin.group, pin.image)))


def put_pin(connection: Connection, pin: Pin, change: AuditEntry | None) -> None:
    group(connection, pin.group)
    _unpin(connection, pin.group, pin.image)
    connection.execute(
        insert(pins).values(
            group_name=pin.group,
            image=pin.image,
            digest=pin.digest,
            until=None if pin.until is None else pin.until.isoformat(),
            set_by=pin.set_by,
            set_at=pin.set_at,
        )
    )
    record_change(connection, change)


def remove_pin(connection: Connection, name: str, image: str, change: AuditEntry | None) -> bool:
    removed = _unpin(connection, name, image)
    record_change(connection, change if removed else None)
    return removed


def _unpin(connection: Connection, name: str, image: str) -> bool:
    query = delete(pins).where(pins.c.group_name == name, pins.c.image == image)
    return bool(connection.execute(query).rowcount)


def image_uses(connection: Connection) -> Mapping[str, tuple[ImageUse, ...]]:
    query = (
        select(requests.c.image, requests.c.id, requests.c.ended_at)
        .where(requests.c.image != "")
        .where(or_(requests.c.kind != "session", requests.c.ended_at.is_(None)))
        .order_by(requests.c.number.desc())
    )
    by_image = defaultdict[str, list[ImageUse]](list)
    for row in connection.execute(query):
        use = ImageUse(request_id=row.id, ended=row.ended_at is not None)
        by_image[row.image].append(use)
    return {image: tuple(uses) for image, uses in by_image.items()}
