"""Add the use of CPU, memory and devices of each attempt over time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0023"
down_revision = "r0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "utilization",
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("begins", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("points", sa.JSON(), nullable=False),
        sa.Column("mean_cores", sa.Double(), nullable=True),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("mean_device_percent", sa.Double(), nullable=True),
        sa.Column("peak_device_bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_utilization_lease_id")),
        sa.PrimaryKeyConstraint("lease_id", name=op.f("pk_utilization")),
    )
