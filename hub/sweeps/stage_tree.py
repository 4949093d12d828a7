"""The tree of stages: the cells that several trials have in common run once, then trials branch.

Trials share a cell if they have shared all cells before it, the cell has no obstacle, and all
parameters that it may use have the same value in them. A stage runs with the parameters that it
has set; the others keep the defaults of the notebook, which no cell of the stage uses. Papermill
assigns all values right after the ``parameters`` cell; here, a value may be assigned later, at a
branch, but always before the first cell that may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .cell_analysis import CellAnalysis, NotebookAnalysis
from .trials import Scalar, Trial, value_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Cells that run once for some trials.

    Attributes:
        first, after: the indexes of its first cell, and of the one after its last.
        trials: numbers of the trials that share it.
        assigned: parameters to set in this stage.
        assigned_before: index of the cell before which to set them; the number of cells if they
            are to be set at the end.
        values: all parameters that have been set by then, those of earlier stages included.
        children: the stages that branch off after the last cell.
    """

    first: int
    after: int
    trials: tuple[int, ...]
    assigned: Mapping[str, Scalar]
    assigned_before: int
    values: Mapping[str, Scalar]
    children: tuple[Stage, ...] = ()

    def walk(self) -> Iterator[Stage]:
        """Yield this stage and all below it, parents first."""
        stack = [self]
        while stack:
            stage = stack.pop()
            yield stage
            stack += reversed(stage.children)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTree:
    """The stages of all trials of a sweep.

    Attributes:
        root: the stage that begins with the first cell.
        cells: the number of cells of the notebook.
        unused: parameters of the space that no cell uses. They are assigned at the end, in a stage
            that ends the notebook, where all trials of the stage have the same value.
    """

    root: Stage
    cells: int
    unused: tuple[str, ...] = ()

    def stages_of(self, trial: int) -> tuple[Stage, ...]:
        """Return the stages that a trial goes through, the first one first."""
        found = [self.root]
        while found[-1].children:
            found.append(next(each for each in found[-1].children if trial in each.trials))
        return tuple(found)

    def runs(self) -> tuple[int, ...]:
        """Return for each cell how often it runs."""
        counts = [0] * self.cells
        for stage in self.root.walk():
            for index in range(stage.first, stage.after):
                counts[index] += 1
        return tuple(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCost:
    """Device-seconds of a sweep.

    Attributes:
        alone: if each trial runs all cells.
        shared: if each stage runs once, without the cost of branches; the ideal of the tree.
    """

    alone: float
    shared: float

    @property
    def saved(self) -> float:
        """The part that sharing saves, from 0 to 1."""
        return 1 - self.shared / self.alone if self.alone else 0.0


def sweep_cost(tree: StageTree, cell_seconds: Sequence[float], *, devices: int = 1) -> SweepCost:
    """Return the ideal cost of a tree, for the seconds that each cell takes on ``devices``."""
    runs = tree.runs()
    shared = sum(number * seconds for number, seconds in zip(runs, cell_seconds, strict=True))
    alone = len(tree.root.trials) * sum(cell_seconds)
    return SweepCost(alone=alone * devices, shared=shared * devices)


def stage_tree(analysis: NotebookAnalysis, trials: Sequence[Trial]) -> StageTree:
    """Return the stages of trials of a notebook. There must be at least one trial."""
    builder = _Builder(analysis.cells, analysis.injection)
    used = {name for cell in analysis.cells for name in cell.parameters}
    given = dict.fromkeys(name for trial in trials for name in trial.values)
    return StageTree(
        root=builder.stage(0, tuple(trials), {}),
        cells=len(analysis.cells),
        unused=tuple(name for name in given if name not in used),
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    cells: Sequence[CellAnalysis]
    injection: int
    keys: dict[tuple[int, str], str] = field(default_factory=dict)

    def stage(self, first: int, trials: tuple[Trial, ...], known: Mapping[str, Scalar]) -> Stage:
        """Return the stage of trials that are identical up to a cell, with all below it."""
        after, groups = self.extent(first, trials)
        leaf = not groups
        place = max(first, self.injection)
        assigned = self.common(trials, known) if leaf or place < after else {}
        values = {**known, **assigned}
        return Stage(
            first=first,
            after=after,
            trials=tuple(trial.number for trial in trials),
            assigned=assigned,
            assigned_before=place,
            values=values,
            children=tuple(self.stage(after, group, values) for group in groups),
        )

    def extent(
        self, first: int, trials: tuple[Trial, ...]
    ) -> tuple[int, Sequence[tuple[Trial, ...]]]:
        """Return the cell before which the trials branch, and the branches; none at the end."""
        if len(trials) > 1:
            for index in range(first, len(self.cells)):
                groups = self.branches(self.cells[index], trials)
                if len(groups) > 1:
                    return index, groups
        return len(self.cells), ()

    def branches(
        self, cell: CellAnalysis, trials: tuple[Trial, ...]
    ) -> Sequence[tuple[Trial, ...]]:
        if cell.obstacles:
            return [(trial,) for trial in trials]
        if not cell.parameters:
            return [trials]
        return _grouped(trials, lambda trial: [self.key(trial, name) for name in cell.parameters])

    def common(self, trials: Sequence[Trial], known: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return the values that all trials have, and that have not been set."""
        first = trials[0]
        return {
            name: value
            for name, value in first.values.items()
            if name not in known
            and all(self.key(trial, name) == self.key(first, name) for trial in trials)
        }

    def key(self, trial: Trial, name: str) -> str:
        """Return a text for the value of a parameter; a trial without it keeps the default."""
        found = self.keys.get((trial.number, name))
        if found is None:
            found = value_key(trial.values[name]) if name in trial.values else "default"
            self.keys[trial.number, name] = found
        return found


def _grouped(
    trials: Sequence[Trial], key: Callable[[Trial], Sequence[str]]
) -> Sequence[tuple[Trial, ...]]:
    groups: dict[tuple[str, ...], list[Trial]] = {}
    for trial in trials:
        groups.setdefault(tuple(key(trial)), []).append(trial)
    return [tuple(each) for each in groups.values()]
