"""Add the image of a request, and the image pins of groups."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0011"
down_revision = "r0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "requests", sa.Column("image", sa.String(), nullable=False, server_default=sa.text("''"))
    )
    op.create_table(
        "pins",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("until", sa.String(), nullable=True),
        sa.Column("set_by", sa.String(), nullable=False),
        sa.Column("set_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("group_name", "image", name="pk_pins"),
        sa.ForeignKeyConstraint(["group_name"], ["groups.name"], name="fk_pins_group_name"),
    )
