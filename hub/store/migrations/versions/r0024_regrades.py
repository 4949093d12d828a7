"""Add regrade requests of students, with their threads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0024"
down_revision = "r0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "regrade_requests",
        sa.Column("id", number, nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("notebook", sa.String(), nullable=False),
        sa.Column("cell", sa.String(), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("closed_at", sa.Double(), nullable=True),
        sa.Column("closed_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_regrade_requests")),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_regrade_requests_course"),
        ),
    )
    op.create_index("regrades_of_course", "regrade_requests", ["course", "assignment"])
    op.create_table(
        "regrade_messages",
        sa.Column("id", number, nullable=False),
        sa.Column("regrade", number, nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_regrade_messages")),
        sa.ForeignKeyConstraint(
            ["regrade"],
            ["regrade_requests.id"],
            name=op.f("fk_regrade_messages_regrade"),
        ),
    )
    op.create_index("messages_of_regrade", "regrade_messages", ["regrade"])
