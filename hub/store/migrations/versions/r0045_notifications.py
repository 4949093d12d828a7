"""Notifications: channels of users, the events that they chose, and the outbox."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0045"
down_revision = "r0046"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "notification_channels",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("confirmed_at", sa.Double(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("last_sent_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_channels")),
    )
    op.create_index("notification_channels_of_owner", "notification_channels", ["owner"])
    op.create_table(
        "notification_choices",
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "event", name=op.f("pk_notification_choices")),
        _of_a_channel("notification_choices"),
    )
    op.create_table(
        "notification_outbox",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("done_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_outbox")),
        sa.UniqueConstraint("channel", "key", name=op.f("uq_notification_outbox_channel_key")),
        _of_a_channel("notification_outbox"),
    )
    op.create_index("notification_outbox_by_state", "notification_outbox", ["state", "channel"])
    op.create_table(
        "notification_messages",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_messages")),
    )
    op.create_index("notification_messages_of_owner", "notification_messages", ["owner", "at"])
    op.create_table(
        "notification_positions",
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", name=op.f("pk_notification_positions")),
    )


def _of_a_channel(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["channel"], ["notification_channels.id"], name=op.f(f"fk_{table}_channel")
    )
