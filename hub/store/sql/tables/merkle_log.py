"""The tables of the log that can be proved: leaves, inner nodes, anchors and signed heads."""

from __future__ import annotations

import time

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from .core import Number, metadata

# Rows that are not in the log yet; written in the transaction that writes the row.
log_queue = Table(
    "log_queue",
    metadata,
    Column("id", Number, primary_key=True),
    # The table of the row, and its key as text.
    Column("source", String, nullable=False),
    Column("row_key", String, nullable=False),
    Column("queued_at", Double, nullable=False, default=time.time),
    Index("queued_rows", "source", "row_key"),
)

# One log a group, by its name. Append-only.
log_leaves = Table(
    "log_leaves",
    metadata,
    Column("log", String, primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("source", String, nullable=False),
    Column("row_key", String, nullable=False),
    Column("entered_at", Double, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    # The columns of the row as JSON, where a newer row may replace it.
    Column("line", Text),
    CheckConstraint("position >= 0", name="position"),
    Index("leaves_of_row", "source", "row_key"),
)

# Roots of complete subtrees of 256 (level 8) and 65,536 leaves (level 16). Append-only.
# The main log has the name "".
log_nodes = Table(
    "log_nodes",
    metadata,
    Column("log", String, primary_key=True),
    Column("level", Integer, primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
)

# Sizes of the logs, and up to which size each is anchored.
logs = Table(
    "logs",
    metadata,
    Column("name", String, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("anchored", BigInteger, nullable=False),
)

# The leaves of the main log. Append-only.
log_anchors = Table(
    "log_anchors",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("log", String, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("at", Double, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    CheckConstraint("position >= 0", name="position"),
    Index("anchors_of_log", "log", "size"),
)

# Signed heads of the main log. Only the publication changes.
log_heads = Table(
    "log_heads",
    metadata,
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("key", String, nullable=False),
    Column("signature", String, nullable=False),
    Column("at", Double, nullable=False),
    Column("published_at", Double),
    Column("error", Text, nullable=False),
    Index("heads_by_publication", "published_at", "size"),
)
