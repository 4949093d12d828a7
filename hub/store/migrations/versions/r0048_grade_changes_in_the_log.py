"""Entries of the audit log that decide a grade are lines of the log that can be proved."""

from __future__ import annotations

import time

from alembic import op

revision = "r0048"
down_revision = "r0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "INSERT INTO log_queue (source, row_key, queued_at) "  # noqa: S608  # a number
        f"SELECT 'changes', CAST(id AS VARCHAR), {time.time()} FROM changes "
        "WHERE action IN ('points set', 'submission choose') ORDER BY id"
    )
