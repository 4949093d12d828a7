"""``carrel sweep --explain``: the tree in a terminal and as JSON, without a site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from carrel.hub.cli import cli

from ...sweeps.notebooks import SKLEARN, notebook_text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which holds train.ipynb; there is no site."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARREL_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "train.ipynb").write_text(notebook_text(*SKLEARN))
    return tmp_path


def explain(*arguments: str, path: str = "train.ipynb") -> Result:
    return CliRunner().invoke(cli, ["sweep", path, "--explain", *arguments])


def test_the_tree_and_the_reasons_are_shown() -> None:
    done = explain("--grid", "lr=0.1,0.01", "--grid", "name=adam,sgd")
    assert done.exit_code == 0, done.output
    assert (
        done.output
        == """\
train.ipynb: 4 trials of 9 cells.

cells 1 to 6, once for 4 trials
├── lr=0.1: cell 7, once for 2 trials
│   ├── name=adam: cells 8 to 9, trial 1
│   └── name=sgd: cells 8 to 9, trial 2
└── lr=0.01: cell 7, once for 2 trials
    ├── name=adam: cells 8 to 9, trial 3
    └── name=sgd: cells 8 to 9, trial 4

CELL  RUNS  WHY
   1     1  All 4 trials share it.
   2     1  All 4 trials share it.
   3     1  All 4 trials share it.
   4     1  All 4 trials share it.
   5     1  All 4 trials share it.
   6     1  All 4 trials share it.
   7     2  Line 1 uses train, whose code uses lr.
            Lines that do not need lr can be shared in a cell of their own above it.
   8     4  Line 2 uses name.
            Lines that do not need name can be shared in a cell of their own above it.
   9     4  It comes after cell 8, where the trials branch.

Cells run 16 times instead of 36.
Trained as one: 0 of 4 trials. With --together all could be, if the notebook takes lists of values.
"""
    )


def test_with_recorded_times_the_saving_is_shown(folder: Path) -> None:
    document = json.loads(notebook_text("x = 1", "y = lr"))
    for cell, seconds in zip(document["cells"], [0, 540, 60], strict=True):
        cell["metadata"]["papermill"] = {"duration": seconds}
    (folder / "train.ipynb").write_text(json.dumps(document))
    done = explain("--grid", "lr=1,2,3", "--grid", "depth=1,2")
    assert done.output.endswith("""
depth is a parameter that no cell uses.
Cells run 5 times instead of 18.
By the times that the notebook records, that is 12 min of device time instead of 1 h (80% less), \
without the time that branches take.
Trained as one: 0 of 6 trials. With --together all could be, if the notebook takes lists of values.
""")
    shown = json.loads(explain("--grid", "lr=1,2,3", "--json").output)
    assert shown["device_seconds"] == {"alone": 1800, "shared": 720}


def test_what_may_prevent_a_fork_is_told(folder: Path) -> None:
    sources = ("import torch  # cuda", "device = torch.device('cuda')", "import polars", "y = lr")
    (folder / "train.ipynb").write_text(notebook_text(*sources, "z = 'cuda'"))
    said = [
        "Cell 3 mentions cuda. A kernel that has used a device cannot be forked: each trial then "
        "runs all cells. Use devices below the first cell that uses a parameter.",
        "Cell 4 imports polars, whose threads would end in a fork: each trial runs all cells. "
        "Import it below the first cell that uses a parameter.",
    ]
    assert explain("--grid", "lr=1,2").output.splitlines()[-3:-1] == said
    assert json.loads(explain("--grid", "lr=1,2", "--json").output)["warnings"] == said
    assert "cuda" not in explain("--grid", "lr=1").output


def test_json_has_trials_cells_and_stages() -> None:
    done = explain("--random", "lr=log:1e-4..1e-1", "--trials", "2", "--seed", "7", "--json")
    shown = json.loads(done.output)
    assert shown["space"] == {
        "random": {"lr": {"log": [1e-4, 1e-1]}}, "trials": 2, "seed": 7,
    }  # fmt: skip
    values = [each["values"] for each in shown["trials"]]
    assert shown["cells"][6] == {
        "number": 7,
        "runs": 2,
        "why": "Line 1 uses train, whose code uses lr.",
        "advice": "Lines that do not need lr can be shared in a cell of their own above it.",
    }
    first, *rest = shown["stages"]["children"]
    assert first == {
        "cells": [7, 8, 9], "trials": [1], "assigned": values[0], "assigned_before_cell": 7,
        "values": values[0], "children": [],
    }  # fmt: skip
    assert [each["trials"] for each in rest] == [[2]]
    assert (shown["unused_parameters"], shown["device_seconds"]) == ([], None)


def test_trials_come_from_json_or_from_a_file(folder: Path) -> None:
    trials = '[{"lr": 1}, {"lr": 2}, {"depth": 3}]'
    (folder / "trials.json").write_text(trials)
    assert explain("--list", trials).output == explain("--list", "trials.json").output
    assert "3 trials of 9 cells." in explain("--list", trials).output


def test_a_search_shares_what_no_searched_parameter_can_change() -> None:
    how = ("--objective", "loss", "--sampler", "tpe", "--prune", "asha")
    done = explain("--search", "lr=log:1e-4..1e-1", "--trials", "2", *how)
    assert done.output.splitlines()[2:5] == [
        "cells 1 to 6, once for 2 trials",
        "├── lr=?1: cells 7 to 9, trial 1",
        "└── lr=?2: cells 7 to 9, trial 2",
    ]


def test_many_branches_are_counted() -> None:
    done = explain("--grid", f"lr={','.join(map(str, range(1, 101)))}")
    assert "└── 92 more branches (92 trials)" in done.output
    assert "trial 8\n" in done.output
    assert "trial 9\n" not in done.output


def test_a_value_with_control_characters_does_not_reach_the_terminal(folder: Path) -> None:
    (folder / "trials.json").write_text(json.dumps([{"name": "a\x1b[31m\n"}, {"name": "b"}]))
    assert "\x1b" not in explain("--list", "trials.json").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "The parameters of the sweep are missing."),
        (["--grid", "rate=1"], "train.ipynb has no parameter rate. It has: lr, depth, name."),
        (["--grid", "depth=x"], "The value x does not fit depth, which is a whole number in the"),
        (["--grid", "lr=0.1", "--trials", "3"], "Only random parameters and a search have a"),
        (["--random", "lr=0..1", "--trials", "10000000"], "from 1 to 10,000 trials."),
        (["--list", "missing.json"], "missing.json cannot be read: No such file or directory."),
        (["--list", "."], ". cannot be read: Is a directory."),
        (["--list", "train.ipynb"], "The list of trials is not a list of objects."),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(arguments: list[str], said: str) -> None:
    done = explain(*arguments)
    assert (done.exit_code, done.stdout) == (6, "")
    assert said in done.stderr
    error = json.loads(explain(*arguments, "--json").stderr)["error"]
    assert error["code"] == "invalid"
    assert error["accepted"]


def test_only_notebooks_are_explained(folder: Path) -> None:
    (folder / "train.py").write_text("lr = 1")
    assert "train.py is a script." in explain("--grid", "lr=1", path="train.py").stderr
    (folder / "old.ipynb").write_text('{"worksheets": []}')
    assert (
        "old.ipynb cannot be read as a notebook"
        in explain("--grid", "lr=1", path="old.ipynb").stderr
    )


def test_a_notebook_in_another_language_shares_nothing(folder: Path) -> None:
    document = json.loads(notebook_text("x <- 1"))
    document["metadata"] = {"kernelspec": {"name": "ir", "language": "R"}}
    (folder / "train.ipynb").write_text(json.dumps(document))
    assert "It is not Python, which alone is analysed." in explain("--grid", "lr=1,2").output


def test_trials_that_are_trained_as_one_run_all_cells_once() -> None:
    done = explain("--grid", "lr=0.1,0.01", "--together")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "train.ipynb: 2 trials trained as one, 9 cells.",
        "",
        "All cells run once: each parameter of the sweep is a list with one value a trial.",
        "No cell calls carrel.execution.fuse_train: the notebook has to train a model for each "
        "value of the lists by itself.",
    ]
    found = json.loads(explain("--grid", "lr=0.1,0.01", "--together", "--json").output)
    assert (found["summary"], found["cells"]) == (
        "train.ipynb: 2 trials trained as one, 9 cells.",
        [],
    )
    refused = explain("--search", "lr=0.1,0.01", "--trials", "2", "--together")
    assert refused.exit_code != 0
    assert "A search cannot train its trials as one" in refused.output


def test_a_notebook_that_fuses_is_told_what_is_trained_as_one(folder: Path) -> None:
    calls = "training = execution.fuse_train(models, loss, learning_rates=lr)"
    (folder / "train.ipynb").write_text(notebook_text("models = [net() for _ in lr]", calls))
    said = explain("--grid", "lr=0.1,0.01", "--together").output
    assert "Cell 3 calls fuse_train: models of one architecture are trained as one" in said


def test_why_trials_are_not_trained_as_one_is_told(folder: Path) -> None:
    search = explain("--search", "lr=0.1,0.01", "--trials", "3").output
    assert search.endswith(
        "Trained as one: 0 of 3 trials. A search cannot train its trials as one: it chooses values "
        "by the results of earlier trials.\n"
    )
    listed = [{"lr": 0.1}, {"lr": 0.2, "depth": 2}, {"lr": 0.3}, {"lr": 0.4, "depth": 3}]
    found = json.loads(explain("--list", json.dumps(listed), "--json").output)
    sentence = "Trials 1 and 3 have no value for depth, which other trials have."
    assert found["together"] == f"Trained as one: 0 of 4 trials. {sentence}"
    assert sentence in explain("--list", json.dumps(listed), "--together").output
