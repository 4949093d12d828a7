"""Sharing stages never changes what a trial computes, prints or writes."""

from __future__ import annotations

from hypothesis import given, note

from carrel.hub.sweeps.notebook_analysis import analyse_notebook
from carrel.hub.sweeps.notebook_cells import read_sweep_notebook
from carrel.hub.sweeps.stage_tree import StageTree, stage_tree
from carrel.hub.sweeps.trials import Trial, optional_parameters, value_key

from ...property_settings import examples
from .random_notebooks import PARAMETERS, RandomSweep, sweeps
from .trial_execution import Outcome, run_by_forks, run_by_stages, run_whole


def planned(sweep: RandomSweep) -> tuple[StageTree, tuple[Trial, ...], int]:
    notebook = read_sweep_notebook("random.ipynb", sweep.text)
    trials = sweep.space.check(notebook).trials()
    analysis = analyse_notebook(notebook, optional=optional_parameters(trials))
    for cell, source in zip(analysis.cells, sweep.cells, strict=True):
        note(f"-- cell {cell.number}: {dict(cell.parameters)} {cell.obstacles}\n{source}")
    return stage_tree(analysis, trials), trials, analysis.injection


def check_same(tree: StageTree, alone: Outcome, shared: Outcome) -> None:
    assert (shared.failed, shared.printed, shared.written) == (
        alone.failed,
        alone.printed,
        alone.written,
    )
    # A parameter that no cell uses need not be assigned; nor, after a failure, a later one.
    ignored = dict.fromkeys(PARAMETERS if alone.failed else tree.unused)
    assert {**shared.variables, **ignored} == {**alone.variables, **ignored}


@given(sweeps())
def test_each_trial_has_the_same_result_alone_and_by_stages(sweep: RandomSweep) -> None:
    tree, trials, injection = planned(sweep)
    for trial in trials:
        note(f"trial {trial}, stages {tree.stages_of(trial.number)}")
        alone = run_whole(sweep.cells, injection, trial)
        check_same(tree, alone, run_by_stages(sweep.cells, tree, trial))


@given(sweeps())
@examples(15, 400)
def test_each_trial_has_the_same_result_if_stages_run_once_and_fork(sweep: RandomSweep) -> None:
    tree, trials, injection = planned(sweep)
    outcomes = run_by_forks(sweep.cells, tree)
    assert sorted(outcomes) == [trial.number for trial in trials]
    for trial in trials:
        check_same(tree, run_whole(sweep.cells, injection, trial), outcomes[trial.number])


@given(sweeps())
def test_stages_are_a_tree_of_trials(sweep: RandomSweep) -> None:
    tree, trials, injection = planned(sweep)
    assert tree.root.first == 0
    assert tree.root.trials == tuple(trial.number for trial in trials)
    by_number = {trial.number: trial for trial in trials}
    for stage in tree.root.walk():
        inner = [number for child in stage.children for number in child.trials]
        assert sorted(inner) == sorted(stage.trials if stage.children else ())
        assert all(child.first == stage.after for child in stage.children)
        assert len(stage.children) != 1
        assert stage.children or stage.after == tree.cells
        assert not stage.assigned or stage.assigned_before >= injection
        for number in stage.trials:
            own = by_number[number].values
            assert all(
                value_key(own[name]) == value_key(value) for name, value in stage.values.items()
            )
    for trial in trials:
        leaf = tree.stages_of(trial.number)[-1]
        assert set(trial.values) - set(leaf.values) <= set(tree.unused)
