"""Add drains and quarantine, the audit log, removed groups, and credits in the ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("groups", sa.Column("removed_at", sa.Double(), nullable=True))
    op.create_table(
        "marks",
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("set_by", sa.String(), nullable=False),
        sa.Column("until", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("target", "kind", name="pk_marks"),
    )
    op.create_table(
        "changes",
        sa.Column("id", number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
    )
    op.create_index("changes_of_target", "changes", ["target", "id"], unique=False)
    op.create_index("changes_of_who", "changes", ["who", "id"], unique=False)
    with op.batch_alter_table("ledger") as ledger:
        ledger.add_column(sa.Column("kind", sa.String(), nullable=False, server_default="charge"))
        ledger.drop_constraint("uq_ledger_lease_id_starts_at", type_="unique")
        ledger.drop_constraint(op.f("ck_ledger_interval"), type_="check")
        ledger.create_unique_constraint(
            "uq_ledger_lease_id_starts_at_kind", ["lease_id", "starts_at", "kind"]
        )
        ledger.create_check_constraint(op.f("ck_ledger_interval"), "ends_at > starts_at")
        ledger.create_check_constraint(
            op.f("ck_ledger_kind"), "(device_seconds > 0) = (kind = 'charge')"
        )
