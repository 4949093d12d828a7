"""Add lending and borrowing of quota, preemptible requests, terms and reservations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0008"
down_revision = "r0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in (
        sa.Column("guaranteed", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("borrowing", sa.Integer(), nullable=True),
        sa.Column("lending", sa.Integer(), nullable=True),
        sa.Column("weight", sa.Double(), nullable=False, server_default="1"),
        sa.Column("models", sa.JSON(), nullable=True),
        sa.Column("max_sessions", sa.Integer(), nullable=True),
        sa.Column("sessions_borrow", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("budget_seconds", sa.Double(), nullable=True),
        sa.Column("budget_period", sa.String(), nullable=True),
    ):
        op.add_column("groups", column)
    for column in (
        sa.Column("preemptible", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("deadline", sa.Double(), nullable=True),
        sa.Column("expected", sa.Double(), nullable=True),
        sa.Column("notice", sa.JSON(), nullable=True),
    ):
        op.add_column("requests", column)
    op.add_column("attempts", sa.Column("saved_at", sa.Double(), nullable=True))
    # Owners could not choose before: existing jobs become preemptible, as new jobs are by default.
    op.execute("UPDATE requests SET preemptible = true WHERE kind = 'job' AND ended_at IS NULL")
    op.create_table(
        "terms",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("first", sa.String(), nullable=False),
        sa.Column("last", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_terms"),
    )
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("weekday", sa.Integer(), nullable=True),
        sa.Column("begins", sa.String(), nullable=False),
        sa.Column("ends", sa.String(), nullable=False),
        sa.Column("zone", sa.String(), nullable=False),
        sa.Column("first", sa.String(), nullable=False),
        sa.Column("last", sa.String(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
        sa.ForeignKeyConstraint(["group_name"], ["groups.name"], name="fk_reservations_group_name"),
    )
