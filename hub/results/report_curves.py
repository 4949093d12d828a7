"""Curves of what a job has reported by ``carrel.report``, and of the trials of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..attempts.reports import ReportedSeries, thinned
from ..messages.units import number_text
from ..schemas.sweeps import ReportsOut, TrialsOut
from ..sweeps.plots import trial_plots
from .curve import Curve, curve

MOST_POINTS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleValue:
    """A name with one value: there is nothing to draw."""

    name: str
    told: str


def report_curves(found: ReportsOut) -> Sequence[Curve | SingleValue]:
    drawn: list[Curve | SingleValue] = []
    for number, each in enumerate(found.reports):
        last = "not a number" if each.last is None else number_text(each.last)
        told = f"last {last}"
        made = curve(f"report-{number}", each.name, told, each.steps, each.values)
        drawn.append(made or SingleValue(name=each.name, told=told))
    return drawn


def best_so_far(found: TrialsOut) -> Curve | None:
    """Return the best objective after each trial that has ended, in the order of their ends."""
    best = trial_plots.best_so_far(found)
    if not best:
        return None
    shown = thinned(ReportedSeries(steps=range(1, len(best) + 1), values=best), MOST_POINTS)
    told = f"best so far, {number_text(best[-1])}"
    return curve("best-so-far", found.objective, told, shown.steps, shown.values)
