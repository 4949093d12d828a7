"""Say per cell why trials share it or not, and what would have to change for them to share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .cell_analysis import CellAnalysis, NotebookAnalysis, ParameterUse
from .notebook_cells import SHARE_TAG
from .stage_tree import Stage, StageTree
from .trials import Trial, value_key


@dataclass(frozen=True, slots=True, kw_only=True)
class CellExplanation:
    """How often a cell runs, and why.

    Attributes:
        number: of the cell, from 1.
        runs: how often it runs for all trials together.
        why: one sentence.
        advice: what would have to change for it to run less often; empty if nothing would help.
    """

    number: int
    runs: int
    why: str
    advice: str = ""


def explain_cells(
    analysis: NotebookAnalysis, tree: StageTree, trials: Sequence[Trial]
) -> tuple[CellExplanation, ...]:
    """Return an explanation of each code cell."""
    varying = _varying(trials)
    found: list[CellExplanation] = []
    branch = 0
    for cell, runs in zip(analysis.cells, tree.runs(), strict=True):
        before = analysis.cells[branch - 1 : cell.number - 1] if branch else ()
        why, advice = _reason(cell, len(trials), runs, varying, before)
        found.append(CellExplanation(number=cell.number, runs=runs, why=why, advice=advice))
        if runs > 1 and not branch:
            branch = cell.number
    return tuple(found)


def _varying(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the parameters that do not have the same value in all trials."""
    names = dict.fromkeys(name for trial in trials for name in trial.values)
    keys = {
        name: {value_key(trial.values[name]) if name in trial.values else None for trial in trials}
        for name in names
    }
    return tuple(name for name in names if len(keys[name]) > 1)


def _reason(
    cell: CellAnalysis,
    trials: int,
    runs: int,
    varying: Sequence[str],
    before: Sequence[CellAnalysis],
) -> tuple[str, str]:
    """Return the sentence and the advice about a cell.

    Args:
        before: the cells between the first branch and this cell.
    """
    used = [name for name in varying if name in cell.parameters]
    if runs == 1:
        if trials == 1:
            return "There is one trial.", ""
        tag = f", as its tag {SHARE_TAG} says" if cell.shared_by_tag else ""
        return f"All {trials} trials share it{tag}.", ""
    if cell.obstacles:
        first = cell.obstacles[0]
        return _sentence(first.line, first.why), first.advice
    if used:
        use = cell.parameters[used[0]]
        more = f" (and {', '.join(used[1:])})" if used[1:] else ""
        return _sentence(use.line, use.why + more), _split_advice(use, used)
    begin = before[0].number
    return f"It comes after cell {begin}, where the trials branch.", _moved_advice(cell, before)


def _split_advice(use: ParameterUse, used: Sequence[str]) -> str:
    if use.line == 0:
        return "Move the parameters cell to the top of the notebook."
    names = used[0] if len(used) == 1 else f"{', '.join(used[:-1])} and {used[-1]}"
    return f"Lines that do not need {names} can be shared in a cell of their own above it."


def _moved_advice(cell: CellAnalysis, before: Sequence[CellAnalysis]) -> str:
    made = {name for each in before for name in each.defines | each.mutates}
    if not before or made & (cell.uses | cell.defines | cell.mutates):
        return ""
    begin, end = before[0].number, before[-1].number
    cells = f"cell {begin} defines" if begin == end else f"cells {begin} to {end} define"
    return (
        f"It uses nothing that {cells}: above cell {begin} it could be shared, unless they change "
        "its data."
    )


def _sentence(line: int, why: str) -> str:
    text = f"line {line} {why}" if line else f"it {why}"
    return f"{text[0].upper()}{text[1:]}."


def stage_json(stage: Stage) -> Mapping[str, object]:
    """Return a stage and those below it as JSON; cells have their numbers, from 1."""
    return {
        "cells": list(range(stage.first + 1, stage.after + 1)),
        "trials": list(stage.trials),
        "assigned": dict(stage.assigned),
        "assigned_before_cell": stage.assigned_before + 1,
        "values": dict(stage.values),
        "children": [stage_json(child) for child in stage.children],
    }
