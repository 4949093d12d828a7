"""Find the submissions of leaderboards that wait for a verdict by an index."""

from __future__ import annotations

from alembic import op

revision = "r0067"
down_revision = "r0066"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "leaderboard_entries_by_outcome",
        "leaderboard_entries",
        ["outcome", "course", "assignment"],
    )
