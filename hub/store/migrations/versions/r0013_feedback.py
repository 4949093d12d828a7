"""Add feedback on submissions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0013"
down_revision = "r0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "feedback",
        sa.Column("submission", number, nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("released_at", sa.Double(), nullable=False),
        sa.Column("released_by", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name=op.f("fk_feedback_submission")
        ),
        sa.PrimaryKeyConstraint("submission", name=op.f("pk_feedback")),
    )
