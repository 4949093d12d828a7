"""Add the gallery: published items and their versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0044"
down_revision = "r0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gallery_items",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("audience", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.Column("forked_from", sa.String(), nullable=False),
        sa.Column("forked_version", sa.Integer(), nullable=False),
        sa.Column("forked_owner", sa.String(), nullable=False),
        sa.Column("withdrawn_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gallery_items")),
        sa.UniqueConstraint("id", name=op.f("uq_gallery_items_id")),
    )
    op.create_index("gallery_items_of_owner", "gallery_items", ["owner"])
    op.create_index("gallery_items_by_change", "gallery_items", ["updated_at"])
    op.create_table(
        "gallery_versions",
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("published_at", sa.Double(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("succeeded", sa.Boolean(), nullable=False),
        sa.Column("jobs", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["item"], ["gallery_items.id"], name=op.f("fk_gallery_versions_item")
        ),
        sa.PrimaryKeyConstraint("item", "version", name=op.f("pk_gallery_versions")),
    )
