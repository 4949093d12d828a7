"""Enter queued lines into the logs, and anchor the logs in the main log."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from ....proofs.texts import anchor_text, head_text, leaf_hash, line_text
from ..tables.merkle_log import log_anchors, log_heads, log_leaves, log_queue, logs
from .sources import SOURCES, LoggedRow

SALT_BYTES = 16
UNKNOWN_LOG = "-"
"""The log of lines whose row was missing when it should have been entered."""
_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSignature:
    """Attributes:
    key: the id of the key.
    signature: in base64.
    """

    key: str
    signature: str


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
    rows = {name: SOURCES[name].rows(connection, wanted) for name, wanted in keys.items()}
    sizes = {name: size for name, size, _ in connection.execute(select(logs)).all()}
    before, leaves = dict(sizes), []
    for each in queued:
        row = rows[each.source].get(each.row_key) or LoggedRow(log=UNKNOWN_LOG, columns={})
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


def make_head(
    connection: Connection, *, site: str, now: float, sign: Sign, only: Collection[str] = ()
) -> bool:
    """Anchor the logs that have grown in the main log, and sign its head.

    Args:
        only: the names of the logs to anchor; all of them by default.

    Returns:
        Whether there is a new head.
    """
    from .tree import MAIN, SqlMerkleTree  # noqa: PLC0415  # see the module

    grown = select(logs).where(logs.c.size > logs.c.anchored).order_by(logs.c.name)
    if only:
        grown = grown.where(logs.c.name.in_(only))
    new = connection.execute(grown).all()
    if not new:
        return False
    before = connection.scalar(select(func.count()).select_from(log_anchors)) or 0
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
    text = head_text(site=site, size=size, root=main.root(size), at=now)
    signed = sign(text)
    connection.execute(
        insert(log_heads).values(
            size=size, text=text, key=signed.key, signature=signed.signature, at=now, error=""
        )
    )
    return True
