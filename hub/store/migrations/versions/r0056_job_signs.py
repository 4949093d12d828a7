"""Signs that something is wrong with the attempt of a job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0056"
down_revision = "r0058"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempts", sa.Column("signs", sa.JSON(none_as_null=True), nullable=True))
