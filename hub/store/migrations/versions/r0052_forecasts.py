"""Forecasts of run times and waits, to compare them with their outcomes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0052"
down_revision = "r0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_time_forecasts",
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("expected", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.Column("basis", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_run_time_forecasts_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", name="pk_run_time_forecasts"),
    )
    op.create_index("run_time_forecasts_by_time", "run_time_forecasts", ["made_at"])
    op.create_table(
        "wait_forecasts",
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("earliest", sa.Double(), nullable=False),
        sa.Column("latest", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name="fk_wait_forecasts_request_id"
        ),
        sa.PrimaryKeyConstraint("request_id", name="pk_wait_forecasts"),
    )
    op.create_index("wait_forecasts_by_time", "wait_forecasts", ["made_at"])
