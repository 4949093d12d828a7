"""Add schedules: jobs that the service submits at the times of a cron expression."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0021"
down_revision = "r0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "schedules",
        sa.Column("number", number, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("cron", sa.String(), nullable=False),
        sa.Column("zone", sa.String(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("paused_why", sa.Text(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=True),
        sa.Column("last_due", sa.Double(), nullable=True),
        sa.Column("last_request", sa.String(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("missed", sa.Integer(), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_schedules")),
        sa.UniqueConstraint("id", name=op.f("uq_schedules_id")),
        sa.UniqueConstraint(
            "owner", "idempotency_key", name=op.f("uq_schedules_owner_idempotency_key")
        ),
    )
    op.create_index("schedules_due", "schedules", ["next_at"])
