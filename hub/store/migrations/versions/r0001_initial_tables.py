"""Create the initial tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "groups",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("max_devices", sa.Integer(), nullable=False),
        sa.Column("max_devices_per_user", sa.Integer(), nullable=False),
        sa.Column("max_seconds", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["groups.name"], name="fk_groups_parent"),
        sa.PrimaryKeyConstraint("name", name="pk_groups"),
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_nodes"),
    )
    op.create_table(
        "devices",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("health", sa.String(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_devices_node"),
        sa.PrimaryKeyConstraint("id", name="pk_devices"),
    )
    op.create_table(
        "group_teachers",
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_name"], ["groups.name"], name="fk_group_teachers_group_name"
        ),
        sa.PrimaryKeyConstraint("group_name", "person", name="pk_group_teachers"),
    )
    op.create_index("teacher_of_groups", "group_teachers", ["person"], unique=False)

    op.create_table(
        "requests",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("priority", sa.String(), nullable=False),
        sa.Column("server_name", sa.String(), nullable=False),
        sa.Column("job", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("cause_code", sa.String(), nullable=True),
        sa.Column("cause_message", sa.Text(), nullable=True),
        sa.Column("cause_details", sa.Text(), nullable=True),
        sa.Column("submitted_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "(ended_at IS NOT NULL) = (state IN ('cancelled', 'failed', 'succeeded', 'timed_out'))",
            name=op.f("ck_requests_ended"),
        ),
        sa.CheckConstraint("devices >= 0", name=op.f("ck_requests_devices")),
        sa.ForeignKeyConstraint(["group_name"], ["groups.name"], name="fk_requests_group_name"),
        sa.PrimaryKeyConstraint("number", name="pk_requests"),
        sa.UniqueConstraint("id", name="uq_requests_id"),
        sa.UniqueConstraint("owner", "idempotency_key", name="uq_requests_owner_idempotency_key"),
    )
    op.create_index(
        "one_live_session_per_server",
        "requests",
        ["owner", "server_name"],
        unique=True,
        sqlite_where=sa.text("kind = 'session' AND ended_at IS NULL"),
        postgresql_where=sa.text("kind = 'session' AND ended_at IS NULL"),
    )
    op.create_index(
        "requests_not_ended",
        "requests",
        ["state", "number"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index("requests_of_owner", "requests", ["owner", "number"], unique=False)

    op.create_table(
        "leases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("granted_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.Column("charged_until", sa.Double(), nullable=False),
        sa.Column("released_at", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "(released_at IS NOT NULL) = (state = 'released')", name=op.f("ck_leases_released")
        ),
        sa.ForeignKeyConstraint(["request_id"], ["requests.id"], name="fk_leases_request_id"),
        sa.PrimaryKeyConstraint("id", name="pk_leases"),
        sa.UniqueConstraint("request_id", "epoch", name="uq_leases_request_id_epoch"),
    )
    op.create_index(
        "one_live_lease_per_request",
        "leases",
        ["request_id"],
        unique=True,
        sqlite_where=sa.text("released_at IS NULL"),
        postgresql_where=sa.text("released_at IS NULL"),
    )

    op.create_table(
        "attempts",
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=True),
        sa.Column("launched_at", sa.Double(), nullable=True),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("process_started_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_attempts_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", name="pk_attempts"),
        sa.UniqueConstraint("token_hash", name="uq_attempts_token_hash"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_id", sa.String(), nullable=True),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_events_lease_id"),
        sa.ForeignKeyConstraint(["request_id"], ["requests.id"], name="fk_events_request_id"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("lease_id", "seq", name="uq_events_lease_id_seq"),
    )
    op.create_index("events_of_request", "events", ["request_id", "id"], unique=False)

    op.create_table(
        "lease_devices",
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("device_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("released_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_lease_devices_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", "device_id", name="pk_lease_devices"),
    )
    op.create_index(
        "one_live_lease_per_device",
        "lease_devices",
        ["device_id"],
        unique=True,
        sqlite_where=sa.text("released_at IS NULL"),
        postgresql_where=sa.text("released_at IS NULL"),
    )

    op.create_table(
        "ledger",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("starts_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "ends_at > starts_at AND device_seconds > 0", name=op.f("ck_ledger_interval")
        ),
        sa.ForeignKeyConstraint(["group_name"], ["groups.name"], name="fk_ledger_group_name"),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_ledger_lease_id"),
        sa.ForeignKeyConstraint(["request_id"], ["requests.id"], name="fk_ledger_request_id"),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
        sa.UniqueConstraint("lease_id", "starts_at", name="uq_ledger_lease_id_starts_at"),
    )
    op.create_index(
        "ledger_of_owner", "ledger", ["owner", "group_name", "device_seconds"], unique=False
    )
    op.create_index("ledger_of_request", "ledger", ["request_id", "device_seconds"], unique=False)
