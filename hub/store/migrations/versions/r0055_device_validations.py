"""Validations of devices: what each measured, and whether it passed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0055"
down_revision = "r0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "device_validations",
        sa.Column("device_id", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("rates", sa.JSON(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("device_id", "at", name="pk_device_validations"),
    )
