"""The trials of a sweep that are left to run, as a tree of stages, and their notebooks."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

import nbformat
from nbformat import NotebookNode
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from papermill.translators import translate_parameters

from ....hub.errors import InvalidInput
from ....hub.records.json_value import Json
from ....hub.records.requests import SweepOrder
from ....hub.sweeps.notebook_analysis import analyse_notebook
from ....hub.sweeps.notebook_cells import (
    INJECTED_TAG,
    SHARE_TAG,
    SweepNotebook,
    read_sweep_notebook,
)
from ....hub.sweeps.space import SearchSpace
from ....hub.sweeps.space_syntax import space_from_json
from ....hub.sweeps.stage_tree import StageTree, stage_tree
from ....hub.sweeps.trials import Scalar, Trial, optional_parameters
from ..attempt.outcome_messages import StartFailed
from ..notebook.attempt import ChosenKernel

_SEEDS: Final = re.compile(r"seed|set_?state|set_rng_state|RandomState")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a sweep has to run.

    Attributes:
        trials: by number, those that have finished before included; of a search, those whose values
            have been chosen.
        fixed: parameters that are the same in all trials.
        search: the space of a search.
        injection: the number of code cells that run before values are assigned.
        tree: of the trials that are left to run; None if there are none. That of a search has
            placeholders as values.
        together: whether one run of all cells has the values of all trials as lists.
    """

    notebook: NotebookNode
    kernel: ChosenKernel
    trials: Mapping[int, Trial]
    fixed: Mapping[str, Scalar]
    search: SearchSpace | None
    injection: int
    cells: int
    tree: StageTree | None
    together: bool = False

    def with_values(self, number: int, values: Mapping[str, Scalar]) -> SweepPlan:
        """Return the plan with a trial whose values a search has chosen."""
        trial = Trial(number=number, values={**self.fixed, **values})
        return replace(self, trials={**self.trials, number: trial})

    def joint_values(self, numbers: Collection[int]) -> dict[str, Scalar | list[Scalar]]:
        """Return the values of a run for these trials: one a trial, unless all have the same."""
        trials = [self.trials[number] for number in numbers]
        swept = [name for name in trials[0].values if name not in self.fixed]
        return {**self.fixed} | {name: [one.values[name] for one in trials] for name in swept}

    def assignment(self, values: Mapping[str, Scalar | list[Scalar]]) -> str:
        """Return code that assigns the values, as papermill does."""
        kernel = self.kernel
        return str(translate_parameters(kernel.name, kernel.language, dict(values), ""))

    def is_unseeded(self, cells: int) -> bool:
        """Whether none of the first cells can have seeded a random generator.

        Only cells that the analysis knows are shared, unless a tag says so: a seed is named there.
        """
        first = [self.notebook.cells[index] for index in code_indexes(self.notebook)[:cells]]
        return not any(
            _SEEDS.search(cell.source) or SHARE_TAG in cell.metadata.get("tags", ())
            for cell in first
        )

    def stage_notebook(self) -> NotebookNode:
        """Return a copy of the notebook for cells that several trials share."""
        notebook = copy.deepcopy(self.notebook)
        notebook.cells = [
            cell for cell in notebook.cells if INJECTED_TAG not in cell.metadata.get("tags", ())
        ]
        return notebook

    def trial_notebook(self, number: int) -> NotebookNode:
        """Return a copy of the notebook with the injected parameters of a trial."""
        return self.notebook_with(self.trials[number].values)

    def notebook_with(self, values: Mapping[str, Scalar | list[Scalar]]) -> NotebookNode:
        """Return a copy of the notebook with injected parameters."""
        kernel = self.kernel
        made: NotebookNode = parameterize_notebook(
            copy.deepcopy(self.notebook),
            dict(values),
            kernel_name=kernel.name,
            language=kernel.language,
        )
        return made


def code_indexes(notebook: NotebookNode) -> list[int]:
    """Return the indexes of the code cells, without the injected one."""
    return [
        index
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and INJECTED_TAG not in cell.metadata.get("tags", ())
    ]


def sweep_plan(
    order: SweepOrder,
    fixed: Mapping[str, Json],
    notebook: NotebookNode,
    kernel: ChosenKernel,
    done: Collection[int],
) -> SweepPlan:
    """Return the plan of a sweep, without the trials that have finished before.

    Args:
        fixed: parameters that are the same in all trials.

    Raises:
        StartFailed: the space does not fit the notebook.
    """
    document = load_notebook_node(notebook)
    found = read_sweep_notebook("", nbformat.writes(document))  # type: ignore[no-untyped-call]
    try:
        space = space_from_json(order.space).check(found)
    except InvalidInput as error:
        raise StartFailed(error.message) from error
    same = cast("Mapping[str, Scalar]", fixed)
    trials = [replace(trial, values={**same, **trial.values}) for trial in space.trials()]
    left = tuple(trial for trial in trials if trial.number not in done)
    search = space if isinstance(space, SearchSpace) else None
    return SweepPlan(
        notebook=document,
        kernel=kernel,
        trials={} if search else {trial.number: trial for trial in trials},
        fixed=same,
        search=search,
        injection=found.injection,
        cells=len(found.cells),
        tree=_tree(found, left) if left and order.share and not order.together else None,
        together=order.together,
    )


def _tree(notebook: SweepNotebook, trials: tuple[Trial, ...]) -> StageTree:
    analysis = analyse_notebook(notebook, optional=optional_parameters(trials))
    return stage_tree(analysis, trials)
