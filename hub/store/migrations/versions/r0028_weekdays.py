"""Reservations on several weekdays: the digits of the weekdays replace the number of one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0028"
down_revision = "r0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "reservations", sa.Column("weekdays", sa.String(), nullable=False, server_default="")
    )
    # Without a weekday, it is a reservation of a single day.
    op.execute("UPDATE reservations SET weekdays = CAST(weekday AS VARCHAR) WHERE weekday >= 0")
    with op.batch_alter_table("reservations") as reservations:
        reservations.drop_column("weekday")
        reservations.alter_column("weekdays", server_default=None)
