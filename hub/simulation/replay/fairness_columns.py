"""Columns about fairness among users and tenants, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...messages import units
from .metrics import Evenness, ReplayMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric of each policy.

    Attributes:
        meaning: one sentence that explains it.
        cell: its text; None where a run has no such metric.
    """

    name: str
    meaning: str
    cell: Callable[[ReplayMetrics], str | None]


def shown(found: Sequence[ReplayMetrics]) -> tuple[Column, ...]:
    """The columns that at least one policy has."""
    return tuple(
        column for column in COLUMNS if any(column.cell(each) is not None for each in found)
    )


def row(figures: ReplayMetrics, columns: Sequence[Column]) -> list[str]:
    """The cells of one policy; empty where it lacks the metric."""
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
        meaning="Of all tenants the highest mean time to completion in the shared pool, as a "
        "multiple of the same tenant's alone on what it is guaranteed: below 1, sharing paid.",
        cell=_finish_time,
    ),
    Column(
        name="worst user's slowdown",
        meaning="The mean slowdown (time to completion over running time) of the user for whom "
        "it is highest.",
        cell=lambda figures: _worst(figures.users),
    ),
    Column(
        name="worst tenant's slowdown",
        meaning="The mean slowdown of the tenant for whom it is highest.",
        cell=lambda figures: _worst(figures.tenants),
    ),
    Column(
        name="below a guarantee",
        meaning="What tenants lacked of their guarantees while they had jobs waiting that would "
        "have fitted into them.",
        cell=lambda figures: _hours(figures.below_guarantee),
    ),
    Column(
        name="below it alone",
        meaning="What they would have lacked alone on as many devices of their own, where jobs "
        "that ask for whole nodes may wait as well.",
        cell=lambda figures: _hours(figures.below_alone),
    ),
)
