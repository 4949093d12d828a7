"""The tables of shadow runs of learned orders; see ``hub.shadow_order``."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Double, ForeignKey, Index, Integer, String, Table, Text

from .core import Number, metadata

# Times since the epoch. At most one run has no end.
shadow_runs = Table(
    "shadow_runs",
    metadata,
    Column("number", Number, primary_key=True),
    Column("name", String, nullable=False),
    Column("since", Double, nullable=False),
    Column("until", Double),
    Column("compared", Integer, nullable=False),
    Column("differing", Integer, nullable=False),
    Column("problem", Text, nullable=False),
)

# Ids of requests, which may be deleted before these rows.
shadow_decisions = Table(
    "shadow_decisions",
    metadata,
    Column("number", Number, primary_key=True),
    Column("run", ForeignKey("shadow_runs.number"), nullable=False),
    Column("at", Double, nullable=False),
    Column("queued", Integer, nullable=False),
    Column("started", JSON, nullable=False),
    Column("would_start", JSON, nullable=False),
    Column("sooner", Double, nullable=False),
    Index("shadow_decisions_of_run", "run", "number"),
)
