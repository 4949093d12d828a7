"""Add the back-off of a request that is retried, and whether it is expedited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0022"
down_revision = "r0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column("expedited", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("requests", sa.Column("not_before", sa.Double(), nullable=True))
    changed = sa.text(
        "ended_at IS NULL AND (changes > 0 OR moved_for <> '' OR stopped_for <> ''"
        " OR expedited OR not_before IS NOT NULL)"
    )
    op.drop_index("requests_changed", table_name="requests")
    op.create_index(
        "requests_changed",
        "requests",
        ["number"],
        unique=False,
        sqlite_where=changed,
        postgresql_where=changed,
    )
