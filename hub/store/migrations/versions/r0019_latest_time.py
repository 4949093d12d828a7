"""Limit stored times to the year 2999, because pages and commands cannot show later ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0019"
down_revision = "r0018"
branch_labels = None
depends_on = None

_LATEST = 32503679999.0
_COLUMNS = (
    ("requests", "deadline"),
    ("marks", "until"),
    ("assignments", "due"),
)


def upgrade() -> None:
    connection = op.get_bind()
    for name, column in _COLUMNS:
        table = sa.table(name, sa.column(column, sa.Float))
        time = table.c[column]
        connection.execute(sa.update(table).where(time > _LATEST).values({column: _LATEST}))
        connection.execute(sa.update(table).where(time < 0).values({column: 0.0}))
