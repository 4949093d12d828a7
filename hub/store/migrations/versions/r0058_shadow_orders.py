"""Shadow runs of learned orders, and the decisions in which they differ."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0058"
down_revision = "r0059"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "shadow_runs",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=True),
        sa.Column("compared", sa.Integer(), nullable=False),
        sa.Column("differing", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_shadow_runs"),
    )
    op.create_table(
        "shadow_decisions",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("run", _NUMBER, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("queued", sa.Integer(), nullable=False),
        sa.Column("started", sa.JSON(), nullable=False),
        sa.Column("would_start", sa.JSON(), nullable=False),
        sa.Column("sooner", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["shadow_runs.number"], name="fk_shadow_decisions_run"),
        sa.PrimaryKeyConstraint("number", name="pk_shadow_decisions"),
    )
    op.create_index("shadow_decisions_of_run", "shadow_decisions", ["run", "number"])
