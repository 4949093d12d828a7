"""Prefixes of classes: which assignments have one, what is computed, and which jobs used it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0033"
down_revision = "r0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "prefix_switches",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("course", "assignment", name=op.f("pk_prefix_switches")),
        _of_an_assignment("prefix_switches"),
    )
    op.create_table(
        "prefixes",
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("notebook", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("submitted_at", sa.Double(), nullable=False),
        sa.Column("models", sa.JSON(), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("cells", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("why_not", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request", name=op.f("pk_prefixes")),
        _of_an_assignment("prefixes"),
    )
    op.create_index("prefixes_of_assignment", "prefixes", ["course", "assignment"])
    op.create_table(
        "prefix_uses",
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("offered_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("request", "epoch", name=op.f("pk_prefix_uses")),
        _of_an_assignment("prefix_uses"),
    )
    op.create_index("prefix_uses_of_course", "prefix_uses", ["course", "assignment"])


def _of_an_assignment(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["course", "assignment"],
        ["assignments.course", "assignments.name"],
        name=op.f(f"fk_{table}_course"),
    )
