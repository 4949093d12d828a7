"""Compare every line with the log, every node with its leaves, and every head with the main log.

Each log is read once, from its first leaf on. The roots at the sizes of its anchors, and of the
main log at the sizes of its heads, are computed on the way from the roots of complete subtrees.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from ....proofs.texts import anchor_text, leaf_hash
from ....proofs.verification import Head
from ..tables.merkle_log import log_anchors, log_heads, log_leaves, log_nodes, log_queue, logs
from .growth import UNKNOWN_LOG, RecordedHead
from .line_proofs import Leaf, text_of_leaf
from .sources import SOURCES, UNREADABLE, LoggedRow

_BATCH = 2000
_MOST_OUTSIDE: Final = 1000
MAIN = ""
LEVELS = (8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    """Something in the database that the log contradicts.

    Attributes:
        log: the name of the log; empty for the main log.
        position: of the leaf or node in the log, from 0 on; None where there is none.
        table, row: the row, and its primary key; empty where it is not about a row.
        problem: a sentence.
        expected: the hash according to the log, in hexadecimal; empty where there is none.
        found: the hash of what is there.
    """

    problem: str
    log: str = MAIN
    position: int | None = None
    table: str = ""
    row: str = ""
    expected: str = ""
    found: str = ""


Advance = Callable[[int], None]
ReadHead = Callable[[str, str, str], Head]
"""Verifies the text, key and signature of a stored head; raises UnprovenLine."""


class _Frontier:
    """The roots of the complete subtrees of the leaves so far, largest first (RFC 9162, 2.1.1)."""

    def __init__(self, pair: Callable[[bytes, bytes], bytes]) -> None:
        self._pair = pair
        self._roots: list[tuple[int, bytes]] = []
        self.size = 0

    def add(self, digest: bytes) -> dict[int, bytes]:
        """Add a leaf; return the stored levels of which a node is now complete, with its root."""
        level, complete = 0, {}
        while self._roots and self._roots[-1][0] == level:
            _, left = self._roots.pop()
            level, digest = level + 1, self._pair(left, digest)
            if level in LEVELS:
                complete[level] = digest
        self._roots.append((level, digest))
        self.size += 1
        return complete

    def root(self) -> bytes:
        *others, (_, digest) = self._roots
        for _, left in reversed(others):
            digest = self._pair(left, digest)
        return digest


def verify_log(
    connection: Connection,
    published: Sequence[Head],
    read_head: ReadHead,
    advance: Advance,
    *,
    last: RecordedHead | None = None,
) -> Iterator[LogFinding]:
    """Yield everything that differs.

    Args:
        last: the head that was signed last, as recorded outside the database.
        published: verified heads from a place outside.
        read_head: verifies a stored head.
        advance: called with the number of lines that were read since the last call.
    """
    from .tree import SqlMerkleTree  # noqa: PLC0415  # see the module

    pair = SqlMerkleTree(connection, MAIN).hash_pair
    stored = {row.name: row for row in connection.execute(select(logs))}
    names = connection.scalars(select(log_leaves.c.log).distinct()).all()
    for name in sorted({*stored, *names}, key=str):
        lines = _log(connection, name, stored.get(name), _Frontier(pair), advance)
        yield from _guarded(lines, f"The log {name}", log=str(name))
    anchors = _main(connection, published, read_head, _Frontier(pair), last)
    yield from _guarded(anchors, "The main log")
    yield from _outside(connection)
    yield from _twice(connection)


def _guarded(findings: Iterator[LogFinding], what: str, log: str = MAIN) -> Iterator[LogFinding]:
    """Yield the findings of one log; a value that cannot be read is one, and ends only this log."""
    try:
        yield from findings
    except UNREADABLE as error:
        problem = f"{what} cannot be verified to its end: {type(error).__name__}: {error}."
        yield LogFinding(problem=problem, log=log)


def _log(
    connection: Connection,
    name: str,
    stored: Leaf | None,
    frontier: _Frontier,
    advance: Advance,
) -> Iterator[LogFinding]:
    nodes = _nodes(connection, name)
    anchors: defaultdict[int, list[Leaf]] = defaultdict(list)
    ordered = select(log_anchors).where(log_anchors.c.log == name).order_by(log_anchors.c.size)
    for anchor in connection.execute(ordered):
        anchors[anchor.size].append(anchor)
    size = None if stored is None else stored.size
    if stored is not None and stored.anchored != max(anchors, default=0):
        yield LogFinding(
            problem=f"The log {name} is noted as anchored to {stored.anchored} lines; its last "
            f"anchor is of {max(anchors, default=0)}.",
            log=name,
        )
    position = 0
    for batch in _batches(connection, name):
        for leaf, finding in _compared(connection, batch):
            if leaf.position != position:
                yield _gap(name, position, leaf)
            position = max(position, leaf.position + 1)
            if finding is not None:
                yield finding
            complete = frontier.add(leaf.hash if isinstance(leaf.hash, bytes) else b"")
            yield from _changed_nodes(name, frontier.size, complete, nodes)
            for anchor in anchors.pop(frontier.size, ()):
                if frontier.root() != anchor.root:
                    yield LogFinding(
                        problem=f"The first {anchor.size} lines of the log {name} differ from "
                        f"its anchor {anchor.position} in the main log.",
                        log=name,
                        position=anchor.size - 1,
                        expected=anchor.root.hex(),
                        found=frontier.root().hex(),
                    )
        advance(len(batch))
    if size != position:
        yield LogFinding(
            problem=f"The log {name} has {position} lines; it should have {size}.", log=name
        )
    for (level, number), digest in nodes.items():
        yield LogFinding(
            problem=f"The log {name} has a node {number} of level {level} without its lines.",
            log=name,
            position=number,
            found=_hex(digest),
        )
    for late in anchors:
        yield LogFinding(
            problem=f"The log {name} had {late} lines when it was anchored; it has {position}.",
            log=name,
            position=position,
            expected=anchors[late][0].root.hex(),
        )


def _gap(name: str, expected: int, leaf: Leaf) -> LogFinding:
    problem = (
        f"The log {name} has a line at {leaf.position}, before line {expected}: it was inserted."
        if leaf.position < expected
        else f"Line {expected} was removed from the log {name}."
        if leaf.position == expected + 1
        else f"Lines {expected} to {leaf.position - 1} were removed from the log {name}."
    )
    return LogFinding(problem=problem, log=name, position=expected)


def _batches(connection: Connection, name: str) -> Iterator[Sequence[Leaf]]:
    query = select(log_leaves).where(log_leaves.c.log == name)
    query = query.order_by(log_leaves.c.position).limit(_BATCH)
    found = connection.execute(query).all()
    while found:
        yield found
        found = connection.execute(query.where(log_leaves.c.position > found[-1].position)).all()


def _nodes(connection: Connection, name: str) -> dict[tuple[int, int], bytes]:
    query = select(log_nodes).where(log_nodes.c.log == name)
    query = query.order_by(log_nodes.c.level, log_nodes.c.position)
    return {(row.level, row.position): row.hash for row in connection.execute(query)}


def _changed_nodes(
    name: str, size: int, complete: Mapping[int, bytes], nodes: dict[tuple[int, int], bytes]
) -> Iterator[LogFinding]:
    """Compare the nodes that are complete at a size, and remove them from ``nodes``."""
    for level, digest in complete.items():
        number = (size >> level) - 1
        stored = nodes.pop((level, number), b"")
        if stored != digest:
            yield LogFinding(
                problem=f"The node {number} of level {level} of the log {name or 'main'} "
                f"({'changed' if stored else 'removed'}) differs from its leaves "
                f"{number << level} to {size - 1}.",
                log=name,
                position=number,
                expected=digest.hex(),
                found=_hex(stored),
            )


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _compared(
    connection: Connection, batch: Sequence[Leaf]
) -> Iterator[tuple[Leaf, LogFinding | None]]:
    """Yield each leaf with what differs from its row."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for leaf in batch:
        keys[leaf.source].append(leaf.row_key)
    rows = {
        name: SOURCES[name].readable_rows(connection, wanted)
        for name, wanted in keys.items()
        if name in SOURCES
    }
    for leaf in batch:
        found, unreadable = rows.get(leaf.source, ({}, {}))
        why = unreadable.get(leaf.row_key, "")
        try:
            finding = (
                _unreadable(leaf, why)
                if why
                else _compare(connection, leaf, found.get(leaf.row_key))
            )
        except UNREADABLE as error:
            finding = _unreadable(leaf, f"{type(error).__name__}: {error}")
        yield leaf, finding


def _compare(connection: Connection, leaf: Leaf, row: LoggedRow | None) -> LogFinding | None:
    """Return what differs between a leaf, its row, and what it keeps of a row that is replaced."""
    found = leaf_hash(text_of_leaf(leaf, None if row is None else row.columns))
    source = SOURCES.get(leaf.source)
    if leaf.log == UNKNOWN_LOG:
        return LogFinding(
            problem=f"The row {leaf.row_key} of the table {leaf.source} was removed, or could not "
            f"be read, before it was entered in the log: line {leaf.position} of the log "
            f"{leaf.log}.",
            log=leaf.log,
            position=leaf.position,
            table=leaf.source,
            row=leaf.row_key,
        )
    if source is not None and source.replaced:
        kept = leaf_hash(text_of_leaf(leaf, json.loads(leaf.line)["line"]))
        if kept != leaf.hash:
            return _different(leaf, kept, missing=False)
        if row is not None and _replaced(connection, leaf):
            return None
    return (
        _different(leaf, found, missing=row is None) if row is None or found != leaf.hash else None
    )


def _unreadable(leaf: Leaf, why: str) -> LogFinding:
    return LogFinding(
        problem=f"The row {leaf.row_key} of the table {leaf.source} or its line {leaf.position} of "
        f"the log {leaf.log} cannot be read: {why}.",
        log=str(leaf.log),
        position=leaf.position,
        table=str(leaf.source),
        row=str(leaf.row_key),
        expected=_hex(leaf.hash),
    )


def _replaced(connection: Connection, leaf: Leaf) -> bool:
    """Whether the row was written again: there is a newer leaf of it, or it is queued."""
    newer = select(func.count()).where(
        log_leaves.c.source == leaf.source,
        log_leaves.c.row_key == leaf.row_key,
        log_leaves.c.log == leaf.log,
        log_leaves.c.position > leaf.position,
    )
    queued = select(func.count()).where(
        log_queue.c.source == leaf.source, log_queue.c.row_key == leaf.row_key
    )
    return bool(connection.scalar(newer) or connection.scalar(queued))


def _different(leaf: Leaf, found: bytes, *, missing: bool) -> LogFinding:
    what = "was removed" if missing else "or its line was changed"
    return LogFinding(
        problem=f"The row {leaf.row_key} of the table {leaf.source} {what}: "
        f"line {leaf.position} of the log {leaf.log}.",
        log=leaf.log,
        position=leaf.position,
        table=leaf.source,
        row=leaf.row_key,
        expected=leaf.hash.hex(),
        found="" if missing else found.hex(),
    )


def _main(
    connection: Connection,
    published: Sequence[Head],
    read_head: ReadHead,
    frontier: _Frontier,
    last: RecordedHead | None,
) -> Iterator[LogFinding]:
    heads: defaultdict[int, list[tuple[str, bytes]]] = defaultdict(list)
    for head in published:
        heads[head.size].append(("published", head.root))
    if last is not None:
        heads[last.size].append(("recorded", last.root))
    yield from _signed_heads(connection, read_head, heads)
    signed = {size for size, of in heads.items() if "signed" in dict(of)}
    nodes = _nodes(connection, MAIN)
    sizes: dict[str, int] = {}
    for expected, anchor in enumerate(
        connection.execute(select(log_anchors).order_by(log_anchors.c.position))
    ):
        text = anchor_text(log=anchor.log, size=anchor.size, root=anchor.root, at=anchor.at)
        if anchor.position != expected or leaf_hash(text) != anchor.hash:
            yield LogFinding(
                problem=f"The anchor {anchor.position} of the log {anchor.log} was changed, or "
                "one before it removed.",
                position=anchor.position,
                expected=anchor.hash.hex(),
                found=leaf_hash(text).hex(),
            )
        if anchor.size <= sizes.get(anchor.log, 0):
            yield LogFinding(
                problem=f"The anchors of the log {anchor.log} are not in their order.",
                position=anchor.position,
            )
        sizes[anchor.log] = anchor.size
        yield from _changed_nodes(MAIN, frontier.size + 1, frontier.add(anchor.hash), nodes)
        for kind, root in heads.pop(frontier.size, ()):
            if root != frontier.root():
                yield LogFinding(
                    problem=f"The {kind} head of size {frontier.size} differs from the main log: "
                    "lines or anchors before it were changed.",
                    position=frontier.size - 1,
                    expected=root.hex(),
                    found=frontier.root().hex(),
                )
    if frontier.size and frontier.size not in signed:
        yield LogFinding(
            problem=f"The main log has {frontier.size} anchors, but no signed head of that size: "
            "the head was removed, or the anchors were not written by the service.",
            position=frontier.size - 1,
            table="log_heads",
            found=frontier.root().hex(),
        )
    for size in sorted(heads):
        kind, root = heads[size][0]
        yield LogFinding(
            problem=f"A {kind} head has size {size}, but the main log has {frontier.size} anchors: "
            "the end of the log was removed, or the database restored from an older backup.",
            position=frontier.size,
            expected=root.hex(),
        )
    for level, number in nodes:
        yield LogFinding(
            problem=f"The main log has a node {number} of level {level} without its anchors.",
            position=number,
        )


def _signed_heads(
    connection: Connection, read_head: ReadHead, heads: dict[int, list[tuple[str, bytes]]]
) -> Iterator[LogFinding]:
    """Add the stored heads to ``heads``, and yield those that the site has not signed."""
    from ....proofs.verification import UnprovenLine  # noqa: PLC0415  # with its caller

    for row in connection.execute(select(log_heads).order_by(log_heads.c.size)):
        try:
            found = read_head(row.text, row.key, row.signature)
        except (UnprovenLine, *UNREADABLE) as error:
            yield LogFinding(problem=f"The head of size {row.size}: {error}", table="log_heads")
            continue
        if found.size != row.size:
            yield LogFinding(
                problem=f"The head of size {row.size} was signed for size {found.size}.",
                table="log_heads",
            )
        heads.setdefault(found.size, []).append(("signed", found.root))


def _outside(connection: Connection) -> Iterator[LogFinding]:
    """Find rows that are neither in the log nor queued for it."""
    for source in SOURCES.values():
        for key in connection.scalars(source.outside(_MOST_OUTSIDE)):
            yield LogFinding(
                problem=f"The row {key} of the table {source.name} is not in the log.",
                table=source.name,
                row=key,
            )
    for row in connection.execute(select(log_queue.c.source, log_queue.c.row_key)):
        known = SOURCES.get(row.source)
        if known is None or not known.readable_rows(connection, [row.row_key])[0]:
            yield LogFinding(
                problem=f"The row {row.row_key} of the table {row.source} was removed, or cannot "
                "be read, before it was entered in the log.",
                table=str(row.source),
                row=str(row.row_key),
            )


def _twice(connection: Connection) -> Iterator[LogFinding]:
    """Find rows that are written once, and have more than one line."""
    once = sorted(name for name, source in SOURCES.items() if not source.replaced)
    query = (
        select(log_leaves.c.source, log_leaves.c.row_key, func.count().label("lines"))
        .where(log_leaves.c.source.in_(once))
        .group_by(log_leaves.c.source, log_leaves.c.row_key)
        .having(func.count() > 1)
    )
    for row in connection.execute(query):
        yield LogFinding(
            problem=f"The row {row.row_key} of the table {row.source} has {row.lines} lines in "
            "the log; it is written once.",
            table=row.source,
            row=row.row_key,
        )
