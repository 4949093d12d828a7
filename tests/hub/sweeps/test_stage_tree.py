"""The stages of realistic notebooks, their cost, and what is said about each cell."""

from __future__ import annotations

import pytest

from carrel.hub.sweeps.explanation import CellExplanation, explain_cells
from carrel.hub.sweeps.notebook_analysis import analyse_notebook
from carrel.hub.sweeps.notebook_cells import SHARE_TAG, SweepNotebook, read_sweep_notebook
from carrel.hub.sweeps.space_syntax import space_from_options
from carrel.hub.sweeps.stage_tree import Stage, StageTree, stage_tree, sweep_cost

from ...source_tree import ROOT
from .notebooks import SKLEARN, TORCH, notebook


def planned(made: SweepNotebook, *grid: str) -> tuple[StageTree, tuple[CellExplanation, ...]]:
    trials = space_from_options(grid=grid).check(made).trials()
    analysis = analyse_notebook(made)
    tree = stage_tree(analysis, trials)
    return tree, explain_cells(analysis, tree, trials)


def shape(stage: Stage) -> object:
    """Return the numbers of the cells of a stage, its trials, what it assigns, and its branches."""
    own = (stage.first + 1, stage.after), stage.trials, dict(stage.assigned)
    return (*own, [shape(each) for each in stage.children]) if stage.children else own


def test_the_loading_and_preprocessing_of_a_notebook_runs_once() -> None:
    tree, cells = planned(notebook(*SKLEARN), "lr=0.1,0.01", "depth=2,4")
    assert tree.runs() == (1, 1, 1, 1, 1, 1, 4, 4, 4)
    assert [cell.why for cell in cells[5:]] == [
        "All 4 trials share it.",
        "Line 1 uses train, whose code uses lr (and depth).",
        "It comes after cell 7, where the trials branch.",
        "It comes after cell 7, where the trials branch.",
    ]
    assert {cell.advice for cell in cells[7:]} == {""}


def test_a_parameter_that_is_used_late_shares_what_comes_before() -> None:
    tree, cells = planned(notebook(*SKLEARN), "name=adam,sgd", "lr=0.1,0.01")
    assert tree.runs() == (1, 1, 1, 1, 1, 1, 2, 4, 4)
    assert shape(tree.root) == (
        (1, 6), (1, 2, 3, 4), {},
        [
            ((7, 7), (1, 3), {"lr": 0.1}, [
                ((8, 9), (1,), {"name": "adam"}),
                ((8, 9), (3,), {"name": "sgd"}),
            ]),
            ((7, 7), (2, 4), {"lr": 0.01}, [
                ((8, 9), (2,), {"name": "adam"}),
                ((8, 9), (4,), {"name": "sgd"}),
            ]),
        ],
    )  # fmt: skip
    assert cells[7].why == "Line 2 uses name."
    assert cells[7].advice == (
        "Lines that do not need name can be shared in a cell of their own above it."
    )


def test_the_warm_up_of_a_network_is_shared() -> None:
    tree, cells = planned(notebook(*TORCH), "lr=0.1,0.01,0.001", "depth=2")
    assert tree.runs() == (1, 1, 1, 1, 1, 1, 1, 3, 3)
    assert tree.root.assigned == {"depth": 2}
    assert cells[8].why == "It comes after cell 8, where the trials branch."


def test_without_a_seed_a_network_is_not_shared() -> None:
    unseeded = (TORCH[0].replace("torch.manual_seed(0)\n", ""), *TORCH[1:])
    tree, cells = planned(notebook(*unseeded), "lr=0.1,0.01")
    assert tree.runs() == (1, 1, 1, 1, 2, 2, 2, 2, 2)
    assert cells[4].why == "Line 1 draws random numbers without a seed (DataLoader)."
    assert cells[4].advice == (
        "Call torch.manual_seed(0) above it, or pass a seed, such as random_state=0 or a generator "
        "with a seed."
    )


def test_the_sample_notebook_shares_its_data() -> None:
    text = (ROOT / "courses" / "sample" / "digits.ipynb").read_text(encoding="utf-8")
    made = read_sweep_notebook("digits.ipynb", text)
    assert planned(made, "hidden=16,32,64")[0].runs() == (1, 1, 1, 3, 3)
    assert planned(made, "hidden=16,32", "seed=1,2")[0].runs() == (1, 1, 2, 4, 4)
    assert planned(made, "epochs=10,20")[0].runs() == (1, 1, 1, 2, 2)


def test_what_nobody_uses_does_not_branch() -> None:
    tree, cells = planned(notebook("x = 1", "print(x)"), "lr=0.1,0.01", "depth=2,4")
    assert tree.unused == ("lr", "depth")
    assert shape(tree.root) == ((1, 3), (1, 2, 3, 4), {})
    assert {cell.why for cell in cells} == {"All 4 trials share it."}


def test_an_obstacle_separates_even_equal_trials() -> None:
    made = notebook("x = 1", "!ls", "y = 2")
    space = space_from_options(listed='[{"lr": 1}, {"lr": 1}, {"lr": 2}]')
    tree = stage_tree(analyse_notebook(made), space.check(made).trials())
    assert shape(tree.root) == (
        (1, 2), (1, 2, 3), {},
        [((3, 4), (1,), {"lr": 1}), ((3, 4), (2,), {"lr": 1}), ((3, 4), (3,), {"lr": 2})],
    )  # fmt: skip


def test_one_and_true_are_different_values_and_a_missing_one_is_the_default() -> None:
    made = notebook("x = lr", parameters="lr = None")
    space = space_from_options(listed='[{"lr": 1}, {"lr": 1.0}, {"lr": true}, {}, {"lr": 1}, {}]')
    tree = stage_tree(analyse_notebook(made), space.check(made).trials())
    assert [each.trials for each in tree.root.children] == [(1, 5), (2,), (3,), (4, 6)]
    assert [dict(each.assigned) for each in tree.root.children] == [
        {"lr": 1}, {"lr": 1.0}, {"lr": True}, {},
    ]  # fmt: skip


def test_values_are_assigned_after_the_parameters_cell_also_in_an_early_branch() -> None:
    made = notebook("import uuid", "run = uuid.uuid4()", "x = lr", at=2)
    tree, _ = planned(made, "lr=1,2", "depth=5")
    assert [
        (each.first, each.assigned_before, dict(each.assigned)) for each in tree.root.walk()
    ] == [
        (0, 3, {}),
        (1, 3, {"lr": 1, "depth": 5}),
        (1, 3, {"lr": 2, "depth": 5}),
    ]


def test_a_tag_shares_a_cell() -> None:
    cells = ("!pip install x", "x = lr")
    assert planned(notebook(*cells), "lr=1,2")[0].runs() == (1, 2, 2)
    tree, explained = planned(notebook(*cells, tags={0: SHARE_TAG}), "lr=1,2")
    assert tree.runs() == (1, 1, 2)
    assert explained[1].why == "All 2 trials share it, as its tag carrel-share says."


def test_a_cell_that_could_move_up_is_pointed_out() -> None:
    _, cells = planned(notebook("x = lr", "import os\nfiles = os.listdir()", "y = x"), "lr=1,2")
    assert cells[2].advice == (
        "It has no variable in common with cell 2: above cell 2 it could be shared."
    )
    assert cells[3].advice == ""


def test_the_ideal_cost_counts_each_stage_once() -> None:
    tree, _ = planned(notebook(*SKLEARN), "lr=0.1,0.01", "depth=2,4")
    seconds = [0, 1, 0, 4, 2, 0, 10, 1, 1]
    cost = sweep_cost(tree, seconds, devices=2)
    assert (cost.alone, cost.shared) == (2 * 4 * 19, 2 * (7 + 4 * 12))
    assert cost.saved == pytest.approx(1 - 55 / 76)


def test_ten_thousand_trials_are_planned() -> None:
    made = notebook("x = 1", "y = lr", "z = depth", parameters="lr = 1\ndepth = 1")

    def numbers(count: int) -> str:
        return ",".join(map(str, range(count)))

    tree, _ = planned(made, f"lr={numbers(100)}", f"depth={numbers(100)}")
    assert tree.runs() == (1, 1, 100, 10_000)
    assert tree.stages_of(10_000)[-1].values == {"lr": 99, "depth": 99}


def test_of_several_branches_the_last_one_is_named() -> None:
    _, cells = planned(notebook("x = lr", "y = depth", "z = y"), "lr=1,2", "depth=3,4")
    assert [cell.why for cell in cells[1:]] == [
        "Line 1 uses lr.",
        "Line 1 uses depth.",
        "It comes after cell 3, where the trials branch.",
    ]


def test_one_trial_is_one_stage() -> None:
    tree, cells = planned(notebook("!ls", "x = lr"), "lr=1")
    assert shape(tree.root) == ((1, 3), (1,), {"lr": 1})
    assert {cell.why for cell in cells} == {"There is one trial."}


def test_a_notebook_without_cells_has_a_stage_without_cells() -> None:
    made = notebook(parameters="lr = 1")
    tree, _ = planned(made, "lr=1,2")
    assert (tree.runs(), tree.unused) == ((1,), ("lr",))
