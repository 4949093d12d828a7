"""Leaderboards of assignments, and the weights that students submit to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0066"
down_revision = "r0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "leaderboards",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("per_day", sa.Integer(), nullable=False),
        sa.Column("public_percent", sa.Integer(), nullable=False),
        sa.Column("counts", sa.String(), nullable=False),
        sa.Column("private_after_due", sa.Boolean(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("seed", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("course", "assignment", name=op.f("pk_leaderboards")),
        _of_an_assignment("leaderboards"),
    )
    op.create_table(
        "leaderboard_entries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("public", sa.Double(), nullable=True),
        sa.Column("private", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leaderboard_entries")),
        _of_an_assignment("leaderboard_entries"),
    )
    op.create_index(
        "leaderboard_entries_of_person", "leaderboard_entries", ["course", "assignment", "person"]
    )


def _of_an_assignment(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["course", "assignment"],
        ["assignments.course", "assignments.name"],
        name=op.f(f"fk_{table}_course"),
    )
