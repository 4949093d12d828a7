"""Jobs of several members: roles as the scheduler reads them, and members of an attempt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0032"
down_revision = "r0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("requests", sa.Column("gang", sa.JSON(none_as_null=True)))
    op.add_column("attempts", sa.Column("members", sa.JSON(none_as_null=True)))
