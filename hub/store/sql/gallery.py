"""Published items of the gallery and their versions."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, Row, func, insert, or_, select, update

from ...errors import Conflict, NotFound, OverMaximum
from ...interfaces.gallery import GalleryFilter, GalleryItem, GalleryVersion
from ...records.audit import AuditEntry
from .marks_and_audit import record_change
from .tables.gallery import gallery_items, gallery_versions
from .transactions import Transactions


class SqlGallery:
    """The part of ``SqlStore`` for the gallery; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add_gallery_item(
        self, item: GalleryItem, version: GalleryVersion, *, most: int, change: AuditEntry
    ) -> None:
        self._transactions.write(lambda c: add(c, item, version, most, change))

    def add_gallery_version(
        self, item: GalleryItem, version: GalleryVersion, *, change: AuditEntry
    ) -> None:
        self._transactions.write(lambda c: add_version(c, item, version, change))

    def gallery_item(self, item_id: str) -> GalleryItem:
        return self._transactions.read(lambda c: read(c, item_id))

    def gallery_versions(self, item_id: str) -> tuple[GalleryVersion, ...]:
        return self._transactions.read(lambda c: read_versions(c, item_id))

    def gallery_items(self, which: GalleryFilter) -> tuple[GalleryItem, ...]:
        return self._transactions.read(lambda c: find(c, which))

    def withdraw_gallery_item(self, item_id: str, *, at: float, change: AuditEntry) -> bool:
        return self._transactions.write(lambda c: withdraw(c, item_id, at, change))


def add(
    connection: Connection,
    item: GalleryItem,
    version: GalleryVersion,
    most: int,
    change: AuditEntry,
) -> None:
    published = select(func.count()).where(
        gallery_items.c.owner == item.owner, gallery_items.c.withdrawn_at.is_(None)
    )
    if (connection.scalar(published) or 0) >= most:
        raise OverMaximum(
            f"You have {most} published item{'s' * (most != 1)}, which is the maximum.",
            accepted="Withdraw one that is not needed any more.",
        )
    _check_title(connection, item)
    connection.execute(insert(gallery_items).values(**_values(item)))
    connection.execute(insert(gallery_versions).values(**_version_values(version)))
    record_change(connection, change)


def add_version(
    connection: Connection, item: GalleryItem, version: GalleryVersion, change: AuditEntry
) -> None:
    _check_title(connection, item)
    # The condition on the version also locks the row until the end of the transaction.
    changed = connection.execute(
        update(gallery_items)
        .where(
            gallery_items.c.id == item.id,
            gallery_items.c.version == item.version - 1,
            gallery_items.c.withdrawn_at.is_(None),
        )
        .values(**_values(item))
    )
    if not changed.rowcount:
        raise Conflict(
            f"{item.id} was withdrawn, or got another version, at the same moment.",
            accepted="Look at the item, and publish again if it is still needed.",
        )
    connection.execute(insert(gallery_versions).values(**_version_values(version)))
    record_change(connection, change)


def read(connection: Connection, item_id: str) -> GalleryItem:
    row = connection.execute(select(gallery_items).where(gallery_items.c.id == item_id)).first()
    if row is None:
        raise NotFound(f"There is no item {item_id[:80]!r} in the gallery.")
    return _item(row)


def read_versions(connection: Connection, item_id: str) -> tuple[GalleryVersion, ...]:
    query = select(gallery_versions).where(gallery_versions.c.item == item_id)
    query = query.order_by(gallery_versions.c.version.desc())
    return tuple(map(_version, connection.execute(query)))


def find(connection: Connection, which: GalleryFilter) -> tuple[GalleryItem, ...]:
    query = select(gallery_items).where(gallery_items.c.withdrawn_at.is_(None))
    if which.audiences is not None:
        query = query.where(
            or_(
                gallery_items.c.audience.in_(sorted(which.audiences)),
                gallery_items.c.owner == which.owner,
            )
        )
    if which.only:
        query = query.where(gallery_items.c.owner == which.only)
    for word in which.words:
        query = query.where(gallery_items.c.search.contains(word, autoescape=True))
    query = query.order_by(gallery_items.c.updated_at.desc(), gallery_items.c.number.desc())
    return tuple(map(_item, connection.execute(query.offset(which.offset).limit(which.limit))))


def withdraw(connection: Connection, item_id: str, at: float, change: AuditEntry) -> bool:
    done = connection.execute(
        update(gallery_items)
        .where(gallery_items.c.id == item_id, gallery_items.c.withdrawn_at.is_(None))
        .values(withdrawn_at=at)
    )
    if done.rowcount:
        record_change(connection, change)
    return bool(done.rowcount)


def _check_title(connection: Connection, item: GalleryItem) -> None:
    """Raise Conflict if the owner has another published item with this title."""
    query = select(gallery_items.c.id, gallery_items.c.title).where(
        gallery_items.c.owner == item.owner,
        gallery_items.c.withdrawn_at.is_(None),
        gallery_items.c.id != item.id,
    )
    for other, title in connection.execute(query):
        if title.casefold() == item.title.casefold():
            raise Conflict(
                f"You have already published {title!r}: it is {other}.",
                accepted=f"Publish a new version of {other}, or choose another title.",
                field="title",
            )


def _values(item: GalleryItem) -> dict[str, object]:
    return {name: value for name, value in asdict(item).items() if name != "number"}


def _version_values(version: GalleryVersion) -> dict[str, object]:
    values = asdict(version)
    group = values.pop("group")
    return values | {"group_name": group}


def _item(row: Row[tuple[object, ...]]) -> GalleryItem:
    return GalleryItem(**row._mapping)


def _version(row: Row[tuple[object, ...]]) -> GalleryVersion:
    values = dict(row._mapping)
    group = values.pop("group_name")
    return GalleryVersion(**values, group=group)
