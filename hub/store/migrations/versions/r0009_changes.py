"""Add changes of queued requests, and the priority class of sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0009"
down_revision = "r0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Also for requests that have ended: the simulator replays them by today's rules.
    op.execute("UPDATE requests SET priority = 'interactive' WHERE kind = 'session'")
    op.add_column(
        "requests", sa.Column("changes", sa.Integer(), nullable=False, server_default="0")
    )
    changed = sa.text("ended_at IS NULL AND changes > 0")
    op.create_index(
        "requests_changed",
        "requests",
        ["number"],
        unique=False,
        sqlite_where=changed,
        postgresql_where=changed,
    )
