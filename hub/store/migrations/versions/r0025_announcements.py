"""Add announcements, and who has closed them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0025"
down_revision = "r0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "announcements",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("starts_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcements")),
    )
    op.create_table(
        "closed_announcements",
        sa.Column("announcement", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["announcement"],
            ["announcements.id"],
            name=op.f("fk_closed_announcements_announcement"),
        ),
        sa.PrimaryKeyConstraint("announcement", "person", name=op.f("pk_closed_announcements")),
    )
