"""The trials of a sweep on the page of its job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ....files.trial_table import state_text, value_of
from ....messages import units
from ....schemas.sweeps import TrialOut, TrialsOut
from ...html.curve import Curve
from .report_curves import best_so_far

SHOWN = 500
"""Trials in the table of the page; the CSV has all."""
_SHORT = 10.0


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
        note: what is wrong with the objective, and how much the table leaves out.
    """

    summary: str
    best: int
    objective: str
    notes: Sequence[str]
    parameters: Sequence[str]
    names: Sequence[str]
    rows: Sequence[TrialRow]
    curves: Sequence[Curve] = ()


def trials_view(found: TrialsOut) -> TrialsView:
    states = Counter(state_text(trial.state) for trial in found.trials)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    total = units.count(len(found.trials), "trial")
    left_out = f"The first {SHOWN} of {total}; the CSV has all of them."
    best = found.best or 0
    value = found.trials[best - 1].reported[found.objective] if best else None
    return TrialsView(
        summary=f"{total}: {counts}.",
        best=best,
        objective=f"{found.objective} = {units.number_text(value)}" if best else "",
        notes=[*filter(None, [found.note]), *([left_out] if len(found.trials) > SHOWN else [])],
        parameters=found.parameters,
        names=found.names,
        rows=[_row(found, trial) for trial in found.trials[:SHOWN]],
        curves=[*filter(None, [best_so_far(found)])],
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
