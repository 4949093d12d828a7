"""The tables of notifications: channels of users, their events, and the outbox."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from .core import Number, metadata

notification_channels = Table(
    "notification_channels",
    metadata,
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("kind", String, nullable=False),
    # The address is a secret, and encrypted: who knows that of a webhook can write to it.
    Column("sealed", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("confirmed_at", Double),
    # Why the last message was not delivered; empty if it was.
    Column("problem", Text, nullable=False),
    # Messages in a row that were refused for good.
    Column("refusals", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    # Not before this time: after a failure, and between two messages.
    Column("next_at", Double, nullable=False),
    Column("last_sent_at", Double),
    Index("notification_channels_of_owner", "owner"),
)

notification_choices = Table(
    "notification_choices",
    metadata,
    Column("channel", ForeignKey("notification_channels.id"), primary_key=True),
    Column("event", String, primary_key=True),
    # Earlier events are not told of.
    Column("since", Double, nullable=False),
)

notification_outbox = Table(
    "notification_outbox",
    metadata,
    Column("id", Number, primary_key=True),
    Column("channel", ForeignKey("notification_channels.id"), nullable=False),
    Column("event", String, nullable=False),
    # What happened, such as event/123: it is put into the outbox of a channel once.
    Column("key", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("path", String, nullable=False),
    Column("at", Double, nullable=False),
    Column("due_at", Double, nullable=False),
    # Not of interest after this time.
    Column("expires_at", Double, nullable=False),
    # waiting, sent or dropped
    Column("state", String, nullable=False),
    Column("why", Text, nullable=False),
    Column("done_at", Double),
    UniqueConstraint("channel", "key"),
    Index("notification_outbox_by_state", "state", "channel"),
)

# When messages were sent to a user, tests included, for the limit of a day.
notification_messages = Table(
    "notification_messages",
    metadata,
    Column("id", Number, primary_key=True),
    Column("owner", String, nullable=False),
    Column("at", Double, nullable=False),
    Index("notification_messages_of_owner", "owner", "at"),
)

# Up to where the events of requests, and the feedback of courses, are in the outbox. That of the
# source "receipts" is the event up to which ended jobs have their receipts.
notification_positions = Table(
    "notification_positions",
    metadata,
    Column("source", String, primary_key=True),
    Column("position", BigInteger, nullable=False),
)
