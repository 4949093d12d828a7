"""Say per cell why trials share it or not, and what would have to change for them to share it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .cell_analysis import CellAnalysis, NotebookAnalysis, ParameterUse
from .notebook_cells import SHARE_TAG, SweepNotebook
from .stage_tree import Stage, StageTree, SweepCost, stage_tree, sweep_cost
from .trials import Trial, value_key

UNFORKED_MODULES: Final = ("polars", "tensorflow", "jax", "ray", "pyspark", "grpc")
"""Modules after whose import a kernel is not forked, as the runner has them."""
_DEVICE: Final = re.compile(r"^[^#\n]*\b(cuda|cupy)\b", re.MULTILINE)
_IMPORT: Final = re.compile(
    rf"^\s*(?:import|from)\s+({'|'.join(UNFORKED_MODULES)})\b", re.MULTILINE
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepExplanation:
    """What the trials of a notebook share, and why.

    Attributes:
        notebook: its name.
        cost: device-seconds with one device, by the times that the notebook records; None if it
            records none for some of its cells.
        warnings: why the kernel perhaps cannot be forked where trials branch, as sentences.
    """

    notebook: str
    trials: tuple[Trial, ...]
    tree: StageTree
    cells: tuple[CellExplanation, ...]
    cost: SweepCost | None
    warnings: tuple[str, ...] = ()

    def as_json(self) -> Mapping[str, object]:
        cost = self.cost
        return {
            "trials": [
                {"number": trial.number, "values": dict(trial.values)} for trial in self.trials
            ],
            "cells": [
                {"number": each.number, "runs": each.runs, "why": each.why, "advice": each.advice}
                for each in self.cells
            ],
            "stages": _stage_json(self.tree.root),
            "unused_parameters": list(self.tree.unused),
            "warnings": list(self.warnings),
            "device_seconds": cost and {"alone": cost.alone, "shared": cost.shared},
        }


def explain_sweep(
    notebook: SweepNotebook, analysis: NotebookAnalysis, trials: Sequence[Trial]
) -> SweepExplanation:
    """Return the stages of a sweep with an explanation of each cell."""
    tree = stage_tree(analysis, trials)
    return SweepExplanation(
        notebook=notebook.name,
        trials=tuple(trials),
        tree=tree,
        cells=explain_cells(analysis, tree, trials),
        cost=_cost(notebook, tree),
        warnings=tuple(_fork_warnings(notebook, tree)),
    )


def _fork_warnings(notebook: SweepNotebook, tree: StageTree) -> Iterator[str]:
    """Yield a sentence about the first cell above a branch that may use a device, and so on.

    The text of a cell cannot tell for certain: the runner asks the kernel.
    """
    above = sorted(
        index
        for stage in tree.root.walk()
        if stage.children
        for index in range(stage.first, stage.after)
    )
    cells = [notebook.cells[index] for index in above]
    for cell, found in ((cell, _DEVICE.search(cell.source)) for cell in cells):
        if found:
            yield (
                f"Cell {cell.number} mentions {found[1]}. A kernel that has used a device cannot "
                "be forked: each trial then runs all cells. Use devices below the first cell that "
                "uses a parameter."
            )
            break
    for cell, found in ((cell, _IMPORT.search(cell.source)) for cell in cells):
        if found:
            yield (
                f"Cell {cell.number} imports {found[1]}, whose threads would end in a fork: each "
                "trial runs all cells. Import it below the first cell that uses a parameter."
            )
            break


def _cost(notebook: SweepNotebook, tree: StageTree) -> SweepCost | None:
    seconds: list[float] = []
    for cell in notebook.cells:
        if cell.seconds is None and cell.source.strip():
            return None
        seconds.append(cell.seconds or 0.0)
    return sweep_cost(tree, seconds)


def explain_cells(
    analysis: NotebookAnalysis, tree: StageTree, trials: Sequence[Trial]
) -> tuple[CellExplanation, ...]:
    """Return an explanation of each code cell."""
    varying = _varying(trials)
    found: list[CellExplanation] = []
    branch = 0
    for index, (cell, runs) in enumerate(zip(analysis.cells, tree.runs(), strict=True)):
        branches = runs > (found[-1].runs if found else 1)
        branch = index if branches else branch
        if runs == 1:
            why, advice = _shared(cell, len(trials)), ""
        elif used := [name for name in varying if name in cell.parameters]:
            use = cell.parameters[used[0]]
            more = f" (and {', '.join(used[1:])})" if used[1:] else ""
            why, advice = _sentence(use.line, use.why + more), _split_advice(use, used)
        elif branches and cell.obstacles:
            first = cell.obstacles[0]
            why, advice = _sentence(first.line, first.why), first.advice
        else:
            why = f"It comes after cell {branch + 1}, where the trials branch."
            advice = _moved_advice(cell, analysis.cells[branch:index], analysis.imported)
        found.append(CellExplanation(number=cell.number, runs=runs, why=why, advice=advice))
    return tuple(found)


def _varying(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the parameters that do not have the same value in all trials."""
    names = dict.fromkeys(name for trial in trials for name in trial.values)
    keys = {
        name: {value_key(trial.values[name]) if name in trial.values else None for trial in trials}
        for name in names
    }
    return tuple(name for name in names if len(keys[name]) > 1)


def _shared(cell: CellAnalysis, trials: int) -> str:
    if trials == 1:
        return "There is one trial."
    tag = f", as its tag {SHARE_TAG} says" if cell.shared_by_tag else ""
    return f"All {trials} trials share it{tag}."


def _split_advice(use: ParameterUse, used: Sequence[str]) -> str:
    if use.line == 0:
        return "Move the parameters cell to the top of the notebook."
    names = used[0] if len(used) == 1 else f"{', '.join(used[:-1])} and {used[-1]}"
    return f"Lines that do not need {names} can be shared in a cell of their own above it."


def _moved_advice(
    cell: CellAnalysis, before: Sequence[CellAnalysis], imported: frozenset[str]
) -> str:
    """Say that a cell could move above those from the branch on, if it shares no variable."""
    own = cell.uses | cell.defines | cell.mutates
    others = {name for each in before for name in each.uses | each.defines | each.mutates}
    if cell.obstacles or not own or own & others - imported:
        return ""
    begin, end = before[0].number, before[-1].number
    cells = f"cell {begin}" if begin == end else f"cells {begin} to {end}"
    return f"It has no variable in common with {cells}: above cell {begin} it could be shared."


def _sentence(line: int, why: str) -> str:
    text = f"line {line} {why}" if line else f"it {why}"
    return f"{text[0].upper()}{text[1:]}."


def _stage_json(stage: Stage) -> Mapping[str, object]:
    """Return a stage and those below it as JSON; cells have their numbers, from 1."""
    return {
        "cells": list(range(stage.first + 1, stage.after + 1)),
        "trials": list(stage.trials),
        "assigned": dict(stage.assigned),
        "assigned_before_cell": stage.assigned_before + 1,
        "values": dict(stage.values),
        "children": [_stage_json(child) for child in stage.children],
    }
