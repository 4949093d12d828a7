"""The tables of stored forecasts and cell times; see ``ForecastStore``."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Double, ForeignKey, Index, String, Table

from .core import metadata

# Seconds; the basis is the likeness of the earlier runs.
run_time_forecasts = Table(
    "run_time_forecasts",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("made_at", Double, nullable=False),
    Column("expected", Double, nullable=False),
    Column("low", Double, nullable=False),
    Column("high", Double, nullable=False),
    Column("basis", String, nullable=False),
    Index("run_time_forecasts_by_time", "made_at"),
)

# Expected starts: times since the epoch.
wait_forecasts = Table(
    "wait_forecasts",
    metadata,
    Column("request_id", ForeignKey("requests.id"), primary_key=True),
    Column("made_at", Double, nullable=False),
    Column("earliest", Double, nullable=False),
    Column("latest", Double, nullable=False),
    Index("wait_forecasts_by_time", "made_at"),
)

# ``cells`` is a list of keys and seconds, in the order of the notebook.
cell_times = Table(
    "cell_times",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("ended_at", Double, nullable=False),
    Column("conditions", String, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("cells", JSON, nullable=False),
    Index("cell_times_by_end", "ended_at"),
)
