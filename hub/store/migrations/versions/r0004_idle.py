"""Add the idle limit of groups, and idle warnings of sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision = "r0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "groups", sa.Column("idle_seconds", sa.Integer(), nullable=False, server_default="1800")
    )
    op.add_column("requests", sa.Column("idle_warning", sa.JSON(), nullable=True))
    op.add_column("requests", sa.Column("kept_at", sa.Double(), nullable=True))
