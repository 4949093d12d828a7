"""Add the preemptor of a request that was preempted and queued again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0016"
down_revision = "r0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column("stopped_for", sa.String(), nullable=False, server_default=sa.text("''")),
    )
    changed = sa.text("ended_at IS NULL AND (changes > 0 OR moved_for <> '' OR stopped_for <> '')")
    op.drop_index("requests_changed", table_name="requests")
    op.create_index(
        "requests_changed",
        "requests",
        ["number"],
        unique=False,
        sqlite_where=changed,
        postgresql_where=changed,
    )
