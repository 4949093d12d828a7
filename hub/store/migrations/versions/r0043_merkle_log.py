"""The log that can be proved; lines from before are queued, and enter it as of now."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "r0043"
down_revision = "r0047"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_EXISTING = (
    ("submissions", "CAST(id AS VARCHAR)", "id"),
    ("verdicts", "request || '/' || CAST(submission AS VARCHAR)", "at, request, submission"),
    ("feedback", "CAST(submission AS VARCHAR)", "submission"),
    ("ledger", "CAST(id AS VARCHAR)", "id"),
)
"""Tables, the key of a row as text, and the order in which the rows enter."""


def upgrade() -> None:
    op.create_table(
        "log_queue",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("row_key", sa.String(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log_queue")),
    )
    op.create_index("queued_rows", "log_queue", ["source", "row_key"])
    op.create_table(
        "log_leaves",
        sa.Column("log", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("row_key", sa.String(), nullable=False),
        sa.Column("entered_at", sa.Double(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("line", sa.Text(), nullable=True),
        sa.CheckConstraint("position >= 0", name=op.f("ck_log_leaves_position")),
        sa.PrimaryKeyConstraint("log", "position", name=op.f("pk_log_leaves")),
    )
    op.create_index("leaves_of_row", "log_leaves", ["source", "row_key"])
    op.create_table(
        "log_nodes",
        sa.Column("log", sa.String(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("log", "level", "position", name=op.f("pk_log_nodes")),
    )
    op.create_table(
        "logs",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("anchored", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_logs")),
    )
    op.create_table(
        "log_anchors",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("position >= 0", name=op.f("ck_log_anchors_position")),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_log_anchors")),
    )
    op.create_index("anchors_of_log", "log_anchors", ["log", "size"])
    op.create_table(
        "log_heads",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("published_at", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("size", name=op.f("pk_log_heads")),
    )
    op.create_index("heads_by_publication", "log_heads", ["published_at", "size"])
    now = time.time()
    for table, key, order in _EXISTING:
        rows = f"SELECT '{table}', {key}, {now} FROM {table} ORDER BY {order}"  # noqa: S608  # constants
        op.execute(f"INSERT INTO log_queue (source, row_key, queued_at) {rows}")
