"""How long the cells of attempts took, to predict the remaining time of running jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0059"
down_revision = "r0052"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cell_times",
        sa.Column("lease_id", sa.String(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.Column("conditions", sa.String(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_cell_times_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", name="pk_cell_times"),
    )
    op.create_index("cell_times_by_end", "cell_times", ["ended_at"])
