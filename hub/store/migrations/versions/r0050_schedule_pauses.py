"""When the service has paused a schedule, so that its owner is told once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0050"
down_revision = "r0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schedules", sa.Column("paused_at", sa.Double(), nullable=True))
