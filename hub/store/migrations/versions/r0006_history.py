"""Add the number of healthy devices over time, and an index of the ledger by time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0006"
down_revision = "r0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "capacity",
        sa.Column("id", number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("healthy", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_capacity"),
    )
    op.create_index(
        "ledger_of_time",
        "ledger",
        ["ends_at", "starts_at", "owner", "group_name", "device_seconds"],
        unique=False,
    )
