"""The course whose rehearsals a schedule starts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0049"
down_revision = "r0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    course = sa.Column("course", sa.String(), nullable=False, server_default=sa.text("''"))
    op.add_column("schedules", course)
