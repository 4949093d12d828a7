"""Add indexes by end of requests and by grant and release of leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0010"
down_revision = "r0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("leases_by_grant", "leases", ["granted_at"], unique=False)
    op.create_index("leases_by_release", "leases", ["released_at"], unique=False)
    ended = sa.text("ended_at IS NOT NULL")
    op.create_index(
        "requests_by_end",
        "requests",
        ["ended_at"],
        unique=False,
        sqlite_where=ended,
        postgresql_where=ended,
    )
