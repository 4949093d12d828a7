"""The Merkle tree of one log (RFC 9162) by pymerkle, over hashes in SQL.

The library combines hashes and makes proofs; this class gives it the hashes of leaves, and the
roots of complete subtrees of 256 and 65,536 leaves that are stored. A root or a proof of a million
leaves therefore reads at most a few hundred rows.

Imported inside functions: the library is needed only when the log grows or a proof is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymerkle import InclusionProof
from pymerkle.core import BaseMerkleTree
from sqlalchemy import Connection, Table, func, insert, select

from ..tables.merkle_log import log_anchors, log_leaves, log_nodes

MAIN = ""
"""The name of the main log in the tables."""
LEVELS = (8, 16)
"""Levels of the stored nodes, lowest first; a node of level n has 2**n leaves."""
_STORED_WIDTHS = frozenset(1 << level for level in LEVELS)
_BLOCK = 256
"""Hashes of a level that are read at once: the children of a node of the next level."""


class SqlMerkleTree(BaseMerkleTree):  # type: ignore[misc]  # the library has no types
    """The tree of a log; reads and writes within the transaction of the caller."""

    def __init__(self, connection: Connection, log: str) -> None:
        super().__init__("sha256")
        self._connection = connection
        self._log = log
        self._blocks: dict[tuple[int, int], Sequence[bytes]] = {}

    def root(self, size: int) -> bytes:
        """Return the root of the first ``size`` leaves."""
        found: bytes = self._get_root(0, size)
        return found

    def inclusion(self, index: int, size: int) -> InclusionProof:
        """Return the path of the leaf ``index`` (from 0) in the tree of ``size`` leaves."""
        rule, path = self._get_inclusion_path(index + 1, size)
        return InclusionProof(self.algorithm, self.security, size, index + 1, rule, path)

    def store_nodes(self, before: int, after: int) -> None:
        """Store the nodes that are complete since the log grew from ``before`` to ``after``."""
        rows = []
        for level in LEVELS:
            for position in range(before >> level, after >> level):
                digest = self._computed(position << level, level)
                rows.append(
                    {"log": self._log, "level": level, "position": position, "hash": digest}
                )
            if rows:
                self._connection.execute(insert(log_nodes), rows)
                rows = []

    def _computed(self, offset: int, level: int) -> bytes:
        lower = max((each for each in LEVELS if each < level), default=0)
        return self._folded(self._stored(offset, lower, 1 << (level - lower)))

    def _get_subroot(self, offset: int, width: int) -> bytes:
        level = max((each for each in LEVELS if width >> each), default=0)
        return self._folded(self._stored(offset, level, width >> level))

    def _folded(self, hashes: Sequence[bytes]) -> bytes:
        level = list(hashes)
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [self.hash_pair(left, right) for left, right in pairs]
        return level[0]

    def _stored(self, offset: int, level: int, count: int) -> Sequence[bytes]:
        """Return ``count`` hashes of a level, from the leaf ``offset`` on, of one block."""
        first = offset >> level
        block = self._block(level, first // _BLOCK)
        found = block[first % _BLOCK :][:count]
        if len(found) != count:
            raise LookupError(f"the log {self._log!r} lacks nodes of level {level} at {first}")
        return found

    def _block(self, level: int, number: int) -> Sequence[bytes]:
        """Return the hashes of a level in one block, which are read once."""
        known = self._blocks.get((level, number))
        if known is not None:
            return known
        if level:
            query = select(log_nodes.c.hash).where(
                log_nodes.c.log == self._log, log_nodes.c.level == level
            )
            place = log_nodes.c.position
        elif self._log == MAIN:
            query, place = select(log_anchors.c.hash), log_anchors.c.position
        else:
            query = select(log_leaves.c.hash).where(log_leaves.c.log == self._log)
            place = log_leaves.c.position
        first = number * _BLOCK
        query = query.where(place >= first, place < first + _BLOCK).order_by(place)
        found = self._connection.scalars(query).all()
        if len(found) == _BLOCK:
            self._blocks[level, number] = found
        return found

    # -- the interface of the library, of which only the reading part is used ----------------

    def _encode_entry(self, data: Any) -> bytes:
        raise NotImplementedError

    def _store_leaf(self, data: Any, digest: bytes) -> int:
        raise NotImplementedError

    def _get_leaf(self, index: int) -> bytes:
        return self._stored(index - 1, 0, 1)[0]

    def _get_leaves(self, offset: int, width: int) -> Sequence[bytes]:
        return self._stored(offset, 0, width)

    def _get_size(self) -> int:
        table: Table = log_anchors if self._log == MAIN else log_leaves
        query = select(func.count()).select_from(table)
        if self._log != MAIN:
            query = query.where(log_leaves.c.log == self._log)
        return self._connection.scalar(query) or 0


class SqlMerkleTreeReader(SqlMerkleTree):
    """The tree of a log within a transaction that only reads, for the proofs of many lines.

    Blocks and roots of subtrees are kept, so that another line costs only its own part of a path.
    """

    def __init__(self, connection: Connection, log: str) -> None:
        super().__init__(connection, log)
        self._roots: dict[tuple[int, int], bytes] = {}
        self._subroots: dict[tuple[int, int], bytes] = {}

    def _get_root(self, start: int, end: int) -> bytes:
        known = self._roots.get((start, end))
        if known is None:
            known = self._roots[start, end] = super()._get_root(start, end)
        return known

    def _get_subroot(self, offset: int, width: int) -> bytes:
        known = self._subroots.get((offset, width))
        if known is None:
            known = self._subroots[offset, width] = self._new_subroot(offset, width)
        return known

    def _new_subroot(self, offset: int, width: int) -> bytes:
        if width == 1 or width in _STORED_WIDTHS:
            return super()._get_subroot(offset, width)
        half = width // 2
        pair: bytes = self.hash_pair(
            self._get_subroot(offset, half), self._get_subroot(offset + half, half)
        )
        return pair

    def _block(self, level: int, number: int) -> Sequence[bytes]:
        found = super()._block(level, number)
        self._blocks[level, number] = found
        return found
