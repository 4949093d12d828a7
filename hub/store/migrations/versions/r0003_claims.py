"""Add the columns for sessions whose device is held until the owner claims it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "requests", sa.Column("claim", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("requests", sa.Column("claimed_at", sa.Double(), nullable=True))
