"""The trials of a sweep as a table: for the terminal, and for spreadsheets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from ..messages import units
from ..schemas.sweeps import TrialOut, TrialsOut
from .csv_table import Cell, csv_of


def trials_csv(found: TrialsOut) -> str:
    """Return one line for each trial, below a heading; unknown values are empty."""
    return csv_of([_heading(found), *_rows(found)])


def _heading(found: TrialsOut) -> list[Cell]:
    return ["trial", *found.parameters, "state", "seconds", *found.names, "message"]


def _rows(found: TrialsOut) -> Iterator[list[Cell]]:
    for trial in found.trials:
        values = [_cell(trial, name) for name in found.parameters]
        reported: list[Cell] = [trial.reported.get(name) for name in found.names]
        seconds = trial.seconds if trial.at is not None else None
        yield [trial.number, *values, trial.state, seconds, *reported, trial.message]


def state_text(state: str) -> str:
    """Return the state of a trial in words."""
    return "stopped early" if state == "pruned" else state.replace("_", " ")


def states_text(found: TrialsOut) -> str:
    """Return how many trials are in which state, as a sentence."""
    states = Counter(state_text(trial.state) for trial in found.trials)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    number = max(found.planned, len(found.trials))
    total = units.trained_as_one(number) if found.together else units.count(number, "trial")
    if len(found.trials) < found.planned:
        total = f"{len(found.trials)} of {total} chosen"
    return f"{total}: {counts}." if counts else f"{total}."


def _cell(trial: TrialOut, name: str) -> Cell:
    value = trial.values.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else value_of(trial, name)  # type: ignore[return-value]  # a number


def value_of(trial: TrialOut, name: str) -> str:
    """Return a parameter of a trial as text; empty if it keeps its default."""
    if name not in trial.values:
        return ""
    value = trial.values[name]
    return value if isinstance(value, str) else json.dumps(value)
