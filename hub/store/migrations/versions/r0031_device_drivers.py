"""The driver of each device, and the files by which a container uses it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0031"
down_revision = "r0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "devices", sa.Column("driver", sa.String(), nullable=False, server_default="nvidia")
    )
    op.add_column("devices", sa.Column("files", sa.JSON(), nullable=False, server_default="[]"))
