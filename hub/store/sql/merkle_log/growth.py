"""Enter queued lines into the logs, and anchor the logs in the main log."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, insert, select, update

from ....errors import Unavailable
from ....proofs.texts import anchor_text, canonical, head_text, leaf_hash, line_text
from ..tables.merkle_log import log_anchors, log_heads, log_leaves, log_queue, logs
from .sources import SOURCES, UNREADABLE, LoggedRow

if TYPE_CHECKING:
    from .tree import SqlMerkleTree

SALT_BYTES = 16
UNKNOWN_LOG = "-"
"""The log of lines whose row was missing or unreadable when it should have been entered."""
_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSignature:
    """Attributes:
    key: the id of the key.
    signature: in base64.
    """

    key: str
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHead:
    """The size and root (32 bytes) of a head of the main log."""

    size: int
    root: bytes


Sign = Callable[[str], HeadSignature]
"""Signs the text of a head."""


def enter_lines(connection: Connection, *, now: float, limit: int) -> int:
    """Enter up to ``limit`` queued lines, and return how many.

    One transaction: after a crash the lines are still queued, and none is entered twice.
    """
    from .tree import SqlMerkleTree  # noqa: PLC0415  # see the module

    query = select(log_queue).order_by(log_queue.c.id).limit(limit)
    queued = connection.execute(query).all()
    if not queued:
        return 0
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for each in queued:
        keys[each.source].append(each.row_key)
    rows = {
        name: SOURCES[name].readable_rows(connection, wanted)[0]
        for name, wanted in keys.items()
        if name in SOURCES
    }
    sizes = {name: size for name, size, _ in connection.execute(select(logs)).all()}
    before, leaves = dict(sizes), []
    for each in queued:
        row, kept = _kept(each.source, rows.get(each.source, {}).get(each.row_key))
        position, salt = sizes.get(row.log, 0), secrets.token_bytes(SALT_BYTES)
        sizes[row.log] = position + 1
        text = line_text(
            log=row.log,
            index=position,
            table=each.source,
            line=row.columns or None,
            entered_at=now,
            salt=salt,
        )
        leaves.append(
            {
                "log": row.log,
                "position": position,
                "source": each.source,
                "row_key": each.row_key,
                "entered_at": now,
                "salt": salt,
                "hash": leaf_hash(text),
                "line": kept,
            }
        )
    connection.execute(insert(log_leaves), leaves)
    for name, size in sizes.items():
        old = before.get(name)
        if old == size:
            continue
        SqlMerkleTree(connection, name).store_nodes(old or 0, size)
        if old is None:
            connection.execute(insert(logs).values(name=name, size=size, anchored=0))
        else:
            connection.execute(update(logs).where(logs.c.name == name).values(size=size))
    numbers = [each.id for each in queued]
    for start in range(0, len(numbers), _CHUNK):
        some = numbers[start : start + _CHUNK]
        connection.execute(delete(log_queue).where(log_queue.c.id.in_(some)))
    return len(queued)


def _kept(source: str, row: LoggedRow | None) -> tuple[LoggedRow, str | None]:
    """Return the row to enter, and its columns as JSON where a newer row may replace it."""
    try:
        if row is not None:
            text = canonical({"line": dict(row.columns), "log": row.log})
            return row, text if SOURCES[source].replaced else None
    except UNREADABLE:
        pass
    return LoggedRow(log=UNKNOWN_LOG, columns={}), None


def make_head(
    connection: Connection,
    *,
    site: str,
    now: float,
    sign: Sign,
    last: RecordedHead | None = None,
) -> RecordedHead | None:
    """Anchor the logs that have grown in the main log, and sign its head.

    Args:
        last: the head that was signed last, as far as it is known.

    Returns:
        The new head; None if no log has grown.

    Raises:
        Unavailable: the main log does not extend ``last``; nothing is signed.
    """
    from .tree import MAIN, SqlMerkleTree  # noqa: PLC0415  # see the module

    grown = select(logs).where(logs.c.size > logs.c.anchored).order_by(logs.c.name)
    new = connection.execute(grown).all()
    if not new:
        return None
    highest = connection.scalar(select(func.max(log_anchors.c.position)))
    before = 0 if highest is None else highest + 1
    if last is not None and not _extends(SqlMerkleTree(connection, MAIN), before, last):
        raise Unavailable(
            f"The log does not extend the head of size {last.size} that was signed last; no head "
            "is signed.",
            accepted="An administrator finds out more with: carrel audit verify.",
        )
    anchors = []
    for position, log in enumerate(new, start=before):
        root = SqlMerkleTree(connection, log.name).root(log.size)
        text = anchor_text(log=log.name, size=log.size, root=root, at=now)
        anchors.append(
            {
                "position": position,
                "log": log.name,
                "size": log.size,
                "root": root,
                "at": now,
                "hash": leaf_hash(text),
            }
        )
        change = update(logs).where(logs.c.name == log.name).values(anchored=log.size)
        connection.execute(change)
    connection.execute(insert(log_anchors), anchors)
    size = before + len(anchors)
    main = SqlMerkleTree(connection, MAIN)
    main.store_nodes(before, size)
    root = main.root(size)
    text = head_text(site=site, size=size, root=root, at=now)
    signed = sign(text)
    connection.execute(
        insert(log_heads).values(
            size=size, text=text, key=signed.key, signature=signed.signature, at=now, error=""
        )
    )
    return RecordedHead(size=size, root=root)


def _extends(main: SqlMerkleTree, size: int, last: RecordedHead) -> bool:
    """Whether the main log of ``size`` anchors begins with those of the last head."""
    if size < last.size:
        return False
    try:
        return main.root(last.size) == last.root
    except LookupError:
        return False
