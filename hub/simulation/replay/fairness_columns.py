"""Fairness columns of the report, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...messages import units
from .metrics import Evenness, ReplayMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric of the policies.

    Attributes:
        meaning: one sentence that explains it.
        cell: returns its text; None if the metrics lack it.
    """

    name: str
    meaning: str
    cell: Callable[[ReplayMetrics], str | None]


def shown(found: Sequence[ReplayMetrics]) -> tuple[Column, ...]:
    """Return the columns that at least one policy has."""
    return tuple(
        column for column in COLUMNS if any(column.cell(each) is not None for each in found)
    )


def row(figures: ReplayMetrics, columns: Sequence[Column]) -> list[str]:
    """Return the cells of one policy; empty if it lacks the metric."""
    return [column.cell(figures) or "" for column in columns]


def _finish_time(figures: ReplayMetrics) -> str | None:
    found = figures.finish_time
    return None if found is None else f"{found.worst:,.2f}"


def _worst(found: Evenness | None) -> str | None:
    return None if found is None else f"{found.worst:,.1f}"


def _hours(device_seconds: float | None) -> str | None:
    return None if device_seconds is None else units.device_hours(device_seconds)


COLUMNS = (
    Column(
        name="worst finish time",
        meaning="Of all tenants, the highest ratio of mean completion time in the shared pool to "
        "that alone on the guaranteed devices: below 1, the tenant gains from sharing.",
        cell=_finish_time,
    ),
    Column(
        name="worst user's slowdown",
        meaning="The highest mean slowdown (completion time over running time) of a user.",
        cell=lambda figures: _worst(figures.users),
    ),
    Column(
        name="worst tenant's slowdown",
        meaning="The highest mean slowdown of a tenant.",
        cell=lambda figures: _worst(figures.tenants),
    ),
    Column(
        name="below a guarantee",
        meaning="Guaranteed quota that tenants lacked while they had queued jobs that would "
        "have fitted into it.",
        cell=lambda figures: _hours(figures.below_guarantee),
    ),
    Column(
        name="below it alone",
        meaning="The same if every tenant had its guaranteed devices alone: jobs that need whole "
        "nodes may have to wait there too.",
        cell=lambda figures: _hours(figures.below_alone),
    ),
)
