"""Draw the stages of a sweep in a terminal, with a sentence about each cell."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from functools import partial

import click

from ...files.trial_table import state_text, states_text, value_of
from ...messages import units
from ...schemas.sweeps import TrialOut, TrialsOut
from ...sweeps.explanation import SweepExplanation
from ...sweeps.stage_tree import Stage
from ...sweeps.trials import value_text
from ..common import display
from ..common.display import printable

_MOST_BRANCHES = 8
"""Branches of one stage that are drawn."""
_NARROWEST, _WIDEST = 60, 120
_INDENT = 12


def sweep_lines(found: SweepExplanation) -> Iterator[str]:
    """Yield the lines of an explanation: the tree, the cells, and what sharing saves."""
    tree, trials = found.tree, len(found.trials)
    yield f"{found.notebook}: {units.count(trials, 'trial')} of {units.count(tree.cells, 'cell')}."
    yield ""
    yield from _tree(tree.root)
    yield ""
    yield "CELL  RUNS  WHY"
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    for cell in found.cells:
        begin = f"{cell.number:>4}  {cell.runs:>4}  "
        for text in filter(None, [cell.why, cell.advice]):
            yield from textwrap.wrap(
                printable(text), width, initial_indent=begin, subsequent_indent=" " * _INDENT
            )
            begin = " " * _INDENT
    yield ""
    if tree.unused and trials > 1:
        verb = "is a parameter" if len(tree.unused) == 1 else "are parameters"
        yield f"{', '.join(tree.unused)} {verb} that no cell uses."
    yield from _summary(found)


def _tree(stage: Stage) -> Iterator[str]:
    yield _described(stage)
    yield from _branches(stage, "")


def _branches(stage: Stage, indent: str) -> Iterator[str]:
    shown = stage.children[:_MOST_BRANCHES]
    rest = stage.children[_MOST_BRANCHES:]
    for number, child in enumerate(shown, start=1):
        last = number == len(shown) and not rest
        yield f"{indent}{'└── ' if last else '├── '}{_described(child)}"
        yield from _branches(child, indent + ("    " if last else "│   "))
    if rest:
        trials = sum(len(child.trials) for child in rest)
        branches = "branch" if len(rest) == 1 else "branches"
        yield f"{indent}└── {len(rest)} more {branches} ({units.count(trials, 'trial')})"


def _described(stage: Stage) -> str:
    """``lr=0.1: cells 4 to 8, trial 2``."""
    values = ", ".join(f"{name}={value_text(value)}" for name, value in stage.assigned.items())
    first, last = stage.first + 1, stage.after
    if first > last:
        cells = "no cell"
    else:
        cells = f"cell {first}" if first == last else f"cells {first} to {last}"
    count = len(stage.trials)
    trials = f"trial {stage.trials[0]}" if count == 1 else f"once for {count} trials"
    return printable(f"{values}: {cells}, {trials}" if values else f"{cells}, {trials}")


def _summary(found: SweepExplanation) -> Iterator[str]:
    alone = len(found.trials) * found.tree.cells
    runs = sum(found.tree.runs())
    yield f"Cells run {runs} times instead of {alone}."
    cost = found.cost
    if cost is not None and cost.alone > 0:
        shared, alone_text = units.duration(cost.shared), units.duration(cost.alone)
        yield (
            f"By the times that the notebook records, that is {shared} of device time instead of "
            f"{alone_text} ({cost.saved:.0%} less), without the time that branches take."
        )


def show_trials(found: TrialsOut) -> None:
    """Print a line for each trial, and which one is the best."""
    heading = ["TRIAL", *found.parameters, "STATE", "TIME", *found.names, "MESSAGE"]
    right = ",".join(["TRIAL", "TIME", *found.names])
    display.table(heading, map(partial(_trial_row, found), found.trials), right=right)
    click.echo(states_text(found))
    best = found.best_trial()
    if best is not None:
        value = units.number_text(best.reported[found.objective])
        click.echo(f"The best one is trial {best.number}: {printable(found.objective)} = {value}.")
    if found.note:
        click.echo(printable(found.note))


def _trial_row(found: TrialsOut, trial: TrialOut) -> list[str]:
    values = [value_of(trial, name) for name in found.parameters]
    reported = [units.number_text(trial.reported.get(name)) for name in found.names]
    took = units.duration(trial.seconds) if trial.at is not None and trial.seconds else ""
    row = [str(trial.number), *values, state_text(trial.state), took, *reported, trial.message]
    return [printable(text) for text in row]
