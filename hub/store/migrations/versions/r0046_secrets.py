"""Secrets with encrypted values, the sessions that use them, and the tickets of sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0046"
down_revision = "r0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "secrets",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("set_by", sa.String(), nullable=False),
        sa.Column("set_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.Column("used_by", sa.String(), nullable=False),
        sa.Column("used_in", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "group_name", "name", name=op.f("pk_secrets")),
    )
    op.create_index("secrets_of_group", "secrets", ["group_name"])
    op.create_table(
        "session_secrets",
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("uses", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_session_secrets")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_session_secrets_request_id")
        ),
    )
    op.create_table(
        "secret_tickets",
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("lease_id", name=op.f("pk_secret_tickets")),
        sa.ForeignKeyConstraint(
            ["lease_id"], ["leases.id"], name=op.f("fk_secret_tickets_lease_id")
        ),
        sa.UniqueConstraint("token_hash", name=op.f("uq_secret_tickets_token_hash")),
    )
