"""Read the proof of lines: their paths, the anchor of their log, and a signed head."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from ....errors import Unavailable
from ....proofs.document import InclusionPath, LogProof, ProofDocument, ProvedText, SignedHead
from ....proofs.texts import anchor_text, leaf_hash, line_text
from ..tables.merkle_log import log_anchors, log_heads, log_leaves, log_queue
from .sources import SOURCES

Leaf = Row[*tuple[Any, ...]]
_CHUNK = 400


def leaves_of(connection: Connection, source: str, keys: Sequence[str]) -> list[Leaf]:
    """Return the newest leaf of each of these rows that has one, in the order of the keys."""
    newest: dict[str, Leaf] = {}
    for start in range(0, len(keys), _CHUNK):
        query = (
            select(log_leaves)
            .where(
                log_leaves.c.source == source,
                log_leaves.c.row_key.in_(keys[start : start + _CHUNK]),
            )
            .order_by(log_leaves.c.position)
        )
        newest.update({row.row_key: row for row in connection.execute(query)})
    return [newest[key] for key in keys if key in newest]


def not_anchored(connection: Connection, leaves: Iterable[Leaf]) -> set[str]:
    """Return the logs of these leaves that are not anchored beyond all of them."""
    return {log for log, last in _last(leaves).items() if _anchor(connection, log, last) is None}


def _last(leaves: Iterable[Leaf]) -> dict[str, int]:
    last: dict[str, int] = {}
    for leaf in leaves:
        last[leaf.log] = max(leaf.position, last.get(leaf.log, 0))
    return last


def _anchor(connection: Connection, log: str, position: int) -> Leaf | None:
    """Return the first anchor of a log that covers a position."""
    query = (
        select(log_anchors)
        .where(log_anchors.c.log == log, log_anchors.c.size > position)
        .order_by(log_anchors.c.size)
        .limit(1)
    )
    return connection.execute(query).one_or_none()


def proof_of(connection: Connection, leaves: Sequence[Leaf]) -> ProofDocument:
    """Return the proof of leaves, which are all anchored.

    Raises:
        Unavailable: a row differs from its leaf.
        LookupError: a leaf or a node of the tree is missing.
    """
    from .tree import MAIN, SqlMerkleTreeReader  # noqa: PLC0415  # see the module

    head = connection.execute(select(log_heads).order_by(log_heads.c.size.desc()).limit(1)).one()
    by_log: defaultdict[str, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        by_log[leaf.log].append(leaf)
    texts = _texts(connection, leaves)
    main, logs = SqlMerkleTreeReader(connection, MAIN), []
    for name, last in sorted(_last(leaves).items()):
        anchor, tree = _anchor(connection, name, last), SqlMerkleTreeReader(connection, name)
        assert anchor is not None, "the leaves are anchored"
        lines = [
            ProvedText(
                text=texts[leaf.log, leaf.position],
                inclusion=_path(tree, leaf.position, anchor.size),
            )
            for leaf in by_log[name]
        ]
        text = anchor_text(log=name, size=anchor.size, root=anchor.root, at=anchor.at)
        proved = ProvedText(text=text, inclusion=_path(main, anchor.position, head.size))
        logs.append(LogProof(anchor=proved, lines=lines))
    signed = SignedHead(text=head.text, key=head.key, signature=head.signature)
    return ProofDocument(head=signed, logs=logs)


def _path(tree: Any, index: int, size: int) -> InclusionPath:
    return InclusionPath.model_validate(tree.inclusion(index, size).serialize())


def _texts(connection: Connection, leaves: Sequence[Leaf]) -> dict[tuple[str, int], str]:
    """Return the text of each leaf, of the row as it is now. Raises Unavailable: one differs."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for leaf in leaves:
        keys[leaf.source].append(leaf.row_key)
    rows = {name: SOURCES[name].rows(connection, wanted) for name, wanted in keys.items()}
    texts = {}
    for leaf in leaves:
        row = rows[leaf.source].get(leaf.row_key)
        text = text_of_leaf(leaf, None if row is None else row.columns)
        if leaf_hash(text) != leaf.hash:
            raise _differing(connection, leaf)
        texts[leaf.log, leaf.position] = text
    return texts


def _differing(connection: Connection, leaf: Leaf) -> Unavailable:
    """Return why the row of a leaf cannot be proved: written again just now, or changed."""
    queued = select(log_queue.c.id).where(
        log_queue.c.source == leaf.source, log_queue.c.row_key == leaf.row_key
    )
    if connection.scalar(queued.limit(1)) is not None:
        return Unavailable(
            "A line that you want to prove was just replaced; the new one is not in the log yet.",
            accepted="Try again in a minute.",
        )
    return Unavailable(
        f"The row {leaf.row_key} of the table {leaf.source} differs from line {leaf.position} of "
        f"the log {leaf.log}: it was changed after it was entered.",
        accepted="An administrator finds out more with: carrel audit verify.",
    )


def text_of_leaf(leaf: Leaf, columns: Any) -> str:
    """Return the text of a leaf, if its row has these columns."""
    return line_text(
        log=leaf.log,
        index=leaf.position,
        table=leaf.source,
        line=columns,
        entered_at=leaf.entered_at,
        salt=leaf.salt,
    )
