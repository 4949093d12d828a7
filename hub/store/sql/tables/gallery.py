"""The tables of the gallery, in the same database as the core tables.

Items are withdrawn and never deleted. Contents are in the blob store, by their SHA-256.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from .core import Number, metadata

gallery_items = Table(
    "gallery_items",
    metadata,
    Column("number", Number, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("owner", String, nullable=False),
    Column("audience", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("kind", String, nullable=False),
    Column("what", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("search", Text, nullable=False),
    Column("forked_from", String, nullable=False),
    Column("forked_version", Integer, nullable=False),
    Column("forked_owner", String, nullable=False),
    Column("withdrawn_at", Double),
    Index("gallery_items_of_owner", "owner"),
    Index("gallery_items_by_change", "updated_at"),
)

gallery_versions = Table(
    "gallery_versions",
    metadata,
    Column("item", ForeignKey("gallery_items.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("published_at", Double, nullable=False),
    Column("description", Text, nullable=False),
    Column("group_name", String, nullable=False),
    Column("request", String, nullable=False),
    Column("succeeded", Boolean, nullable=False),
    Column("jobs", Text, nullable=False),
)
