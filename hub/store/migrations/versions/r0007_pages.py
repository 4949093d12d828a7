"""Add indexes for queries of every page: usage of an owner, and requests by owner and kind."""

from __future__ import annotations

from alembic import op

revision = "r0007"
down_revision = "r0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ledger_of_owner", table_name="ledger")
    op.create_index(
        "ledger_of_owner",
        "ledger",
        ["owner", "ends_at", "starts_at", "group_name", "request_id", "device_seconds"],
        unique=False,
    )
    op.create_index(
        "requests_of_owner_and_kind", "requests", ["owner", "kind", "number"], unique=False
    )
