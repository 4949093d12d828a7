"""Programs as tenants: their tokens, budgets and jobs, and the setting of groups."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0047"
down_revision = "r0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "groups", sa.Column("programs", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_table(
        "programs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.Column("approve_above", sa.Double()),
        sa.Column("reads_owner", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("revoked_at", sa.Double()),
        sa.Column("revoked_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_programs")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_programs_token_hash")),
    )
    op.create_index("programs_of_owner", "programs", ["owner", "name"])
    op.create_table(
        "program_jobs",
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("program", sa.String(), nullable=False),
        sa.Column("needs_approval", sa.Boolean(), nullable=False),
        sa.Column("approved_at", sa.Double()),
        sa.ForeignKeyConstraint(["program"], ["programs.id"], name=op.f("fk_program_jobs_program")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_program_jobs_request_id")
        ),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_program_jobs")),
    )
    op.create_index("jobs_of_program", "program_jobs", ["program"])
