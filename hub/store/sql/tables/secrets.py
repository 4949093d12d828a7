"""The tables of secrets."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Double, ForeignKey, Index, String, Table, Text

from .core import metadata

# One of owner and group is empty. The token is the encrypted value.
secrets = Table(
    "secrets",
    metadata,
    Column("owner", String, primary_key=True),
    Column("group_name", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("token", Text, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Double, nullable=False),
    Column("used_at", Double),
    Column("used_by", String, nullable=False),
    Column("used_in", String, nullable=False),
    Index("secrets_of_group", "group_name"),
)

# The secrets of a session, as a job has them in its specification.
session_secrets = Table(
    "session_secrets",
    metadata,
    Column("request_id", ForeignKey("requests.id"), primary_key=True),
    Column("uses", JSON, nullable=False),
)

# A session fetches its values once with a ticket, of which only the hash is stored.
secret_tickets = Table(
    "secret_tickets",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("token_hash", String, nullable=False, unique=True),
)
