"""The trials of a sweep, as the page of its job and a widget show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..files.trial_table import state_text, states_text, value_of
from ..messages import units
from ..schemas.sweeps import TrialOut, TrialsOut
from ..sweeps.plots.svg_layout import ParallelDrawing, parallel_drawing
from .curve import Curve
from .list_part import ListPart
from .report_curves import best_so_far

_SHORT = 10.0
_FIRST = "The best trial comes first, then those that run and those that have failed."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A line of the table.

    Attributes:
        notebook: whether the trial has an executed notebook.
        may_stop: whether it runs or waits.
        values, reported: by parameter, and by name, in the order of the heading.
    """

    number: int
    notebook: bool
    best: bool
    may_stop: bool
    state: str
    seconds: str
    message: str
    values: Sequence[str]
    reported: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsView:
    """The table of a sweep.

    Attributes:
        summary: how many trials are in which state, as a sentence.
        best: number of the best trial; 0 for none.
        objective: name and value of the best trial.
        notes: what is wrong with the objective, and in which order the trials are.
        parallel: the trials as lines through their values.
        part: the part of the trials that the table shows.
    """

    summary: str
    best: int
    objective: str
    notes: Sequence[str]
    parameters: Sequence[str]
    names: Sequence[str]
    rows: Sequence[TrialRow]
    part: ListPart
    curves: Sequence[Curve] = ()
    parallel: ParallelDrawing | None = None


def trials_view(found: TrialsOut, number: int = 1) -> TrialsView:
    """Return a part of the trials; in a long list those to look at come first."""
    part = ListPart.of(len(found.trials), number)
    best = found.best_trial()
    value = None if best is None else best.reported[found.objective]
    return TrialsView(
        summary=states_text(found),
        best=0 if best is None else best.number,
        objective="" if best is None else f"{found.objective} = {units.number_text(value)}",
        notes=[*filter(None, [found.note]), *([_FIRST] if part.last > 1 else [])],
        parameters=found.parameters,
        names=found.names,
        rows=[_row(found, trial) for trial in _in_order(found, part)[part.chosen]],
        part=part,
        curves=[*filter(None, [best_so_far(found)])],
        parallel=parallel_drawing(found),
    )


def _in_order(found: TrialsOut, part: ListPart) -> Sequence[TrialOut]:
    """Return the trials by number; in a list of several parts the best and live ones first."""
    if part.last == 1:
        return found.trials
    rank = {"running": 1, "failed": 2}
    return sorted(
        found.trials,
        key=lambda each: 0 if each.number == found.best else rank.get(each.state, len(rank) + 1),
    )


def _row(found: TrialsOut, trial: TrialOut) -> TrialRow:
    return TrialRow(
        number=trial.number,
        notebook=bool(trial.notebook),
        best=trial.number == found.best,
        may_stop=trial.state in ("running", "waiting"),
        state=state_text(trial.state),
        seconds=_time(trial.seconds),
        message=trial.message,
        values=[value_of(trial, name) for name in found.parameters],
        reported=[units.number_text(trial.reported.get(name)) for name in found.names],
    )


def _time(seconds: float) -> str:
    """Return a duration; trials of a sweep may be shorter than a second."""
    if not seconds:
        return ""
    return f"{seconds:.2f} s" if seconds < _SHORT else units.duration(seconds)
