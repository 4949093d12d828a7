"""Verdicts of leaderboards are lines of the log that can be proved."""

from __future__ import annotations

import time

from alembic import op

revision = "r0068"
down_revision = "r0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    now = time.time()
    for source, rows in (
        ("leaderboard_entries", "outcome <> ''"),
        ("leaderboard_private_scores", "private IS NOT NULL"),
    ):
        op.execute(
            "INSERT INTO log_queue (source, row_key, queued_at) "  # noqa: S608  # constants
            f"SELECT '{source}', id, {now} FROM leaderboard_entries "
            f"WHERE {rows} ORDER BY sent_at, id"
        )
