"""Add an indexed table of labels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    labels = op.create_table(
        "request_labels",
        sa.Column("number", number, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["number"], ["requests.number"], name="fk_request_labels_number"),
        sa.PrimaryKeyConstraint("number", "name", name="pk_request_labels"),
    )
    op.create_index(
        "requests_of_label", "request_labels", ["name", "value", "number"], unique=False
    )
    requests = sa.table("requests", sa.column("number", sa.Integer), sa.column("labels", sa.JSON))
    rows = [
        {"number": row.number, "name": name, "value": value}
        for row in op.get_bind().execute(sa.select(requests))
        for name, value in row.labels.items()
    ]
    if rows:
        op.bulk_insert(labels, rows)
