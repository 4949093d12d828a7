"""Describe what the trials of a sweep share: the tree of stages, drawn, and the cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from ..messages import units
from ..schemas.sweeps import CellSharingOut, SharingOut
from .explanation import SweepExplanation, explain_sweep
from .notebook_analysis import analyse_notebook
from .notebook_cells import SweepNotebook
from .space import Space
from .stage_tree import Stage
from .trials import Trial, optional_parameters, value_text

_MOST_BRANCHES = 8
"""Branches of one stage that are drawn."""
_OFF = "Sharing is off: each trial runs all cells, in a kernel of its own."

_ONE_RUN = "All cells run once: each parameter of the sweep is a list with one value a trial."
_FUSED = "fuse_train"
_NO_FUSION = (
    "No cell calls carrel.execution.fuse_train: the notebook has to train a model for each "
    "value of the lists by itself."
)


def analysed_sweep(notebook: SweepNotebook, trials: Sequence[Trial]) -> SweepExplanation:
    """Return the stages of the trials of a notebook, with an explanation of each cell."""
    analysis = analyse_notebook(notebook, optional=optional_parameters(trials))
    return explain_sweep(notebook, analysis, trials)


def sharing_out(found: SweepExplanation) -> SharingOut:
    """Return an explanation as text."""
    return SharingOut(
        summary=_summary(found.notebook, len(found.trials), found.tree.cells),
        tree=list(_tree(found.tree.root)),
        cells=[CellSharingOut.model_validate(asdict(cell)) for cell in found.cells],
        notes=list(_notes(found)),
    )


def no_sharing(notebook: SweepNotebook, trials: int) -> SharingOut:
    """Return the description of a sweep of so many trials that share nothing."""
    summary = _summary(notebook.name, trials, len(notebook.cells))
    return SharingOut(summary=summary, tree=[], cells=[], notes=[_OFF])


def one_run(notebook: SweepNotebook, space: Space) -> SharingOut:
    """Return the description of a sweep whose trials are trained by one run of the notebook."""
    trials = space.trials()
    cells = units.count(len(notebook.cells), "cell")
    summary = f"{notebook.name}: {units.trained_as_one(len(trials))}, {cells}."
    return SharingOut(summary=summary, tree=[], cells=[], notes=[_ONE_RUN, _fusion(notebook)])


def _fusion(notebook: SweepNotebook) -> str:
    """Say what makes one of the models of the trials; only a run knows their architectures."""
    cell = next((each for each in notebook.cells if _FUSED in each.source), None)
    if cell is None:
        return _NO_FUSION
    return (
        f"Cell {cell.number} calls {_FUSED}: models of one architecture are trained as one, others "
        "in groups of their own. carrel.execution.explain(training) names the differences."
    )


def _summary(name: str, trials: int, cells: int) -> str:
    return f"{name}: {units.count(trials, 'trial')} of {units.count(cells, 'cell')}."


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
    return f"{values}: {cells}, {trials}" if values else f"{cells}, {trials}"


def _notes(found: SweepExplanation) -> Iterator[str]:
    tree = found.tree
    if tree.unused and len(found.trials) > 1:
        verb = "is a parameter" if len(tree.unused) == 1 else "are parameters"
        yield f"{', '.join(tree.unused)} {verb} that no cell uses."
    alone = len(found.trials) * tree.cells
    yield f"Cells run {sum(tree.runs())} times instead of {alone}."
    cost = found.cost
    if cost is not None and cost.alone > 0:
        shared, alone_text = units.duration(cost.shared), units.duration(cost.alone)
        yield (
            f"By the times that the notebook records, that is {shared} of device time instead of "
            f"{alone_text} ({cost.saved:.0%} less), without the time that branches take."
        )
    yield from found.warnings
