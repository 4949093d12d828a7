"""Add the offset between the clocks of the service."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0018"
down_revision = "r0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "service_clock",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("boot", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_service_clock")),
        sa.CheckConstraint("id = 1", name=op.f("ck_service_clock_one")),
    )
