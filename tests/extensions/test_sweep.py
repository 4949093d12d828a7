"""``carrel.sweep``: the body that it submits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nbformat import write

from carrel.extensions import sweep as module
from carrel.extensions.sweep import explain_sweep
from carrel.hub.errors import InvalidInput
from carrel.hub.sweeps.space_syntax import space_from_json

from ..spawners.notebooks import notebook


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The sweep and the devices of the job that was submitted last."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(module, "submit", lambda _, **given: found.update(given))
    return found


def test_a_search_is_submitted_with_its_sampler_and_pruner(sent: dict[str, Any]) -> None:
    ranges = {"lr": {"log": [1e-4, 0.1]}, "depth": [2, 4]}
    module.sweep(
        "train.ipynb",
        search=ranges,
        number=50,
        seed=7,
        prune="asha",
        objective="loss",
        devices=2,
        parallel=4,
    )
    space = {"search": ranges, "trials": 50, "seed": 7, "sampler": "tpe", "pruner": "asha"}
    assert (sent["sweep"]["space"], sent["devices"]) == (space, 8)
    assert space_from_json(space).as_json() == space


def test_a_sweep_has_one_space(sent: dict[str, Any]) -> None:
    module.sweep("train.ipynb", {"lr": (0.1, 0.01)})
    assert sent["sweep"]["space"] == {"grid": {"lr": [0.1, 0.01]}}
    for given in ({}, {"grid": {"lr": [1]}, "search": {"lr": [1]}}):
        with pytest.raises(InvalidInput, match="or a search"):
            module.sweep("train.ipynb", **given)


def test_what_trials_would_share_is_told_without_a_site(tmp_path: Path) -> None:
    write(notebook("data = [1]", "print(data, lr)", parameters="lr = 0.0"), tmp_path / "n.ipynb")
    found = explain_sweep(tmp_path / "n.ipynb", {"lr": [0.1, 0.01]})
    assert str(found).splitlines()[:6] == [
        "n.ipynb: 2 trials of 3 cells.",
        "",
        "cells 1 to 2, once for 2 trials",
        "├── lr=0.1: cell 3, trial 1",
        "└── lr=0.01: cell 3, trial 2",
        "",
    ]
    with pytest.raises(InvalidInput, match="width"):
        explain_sweep(tmp_path / "n.ipynb", search={"width": [1, 2]}, number=3)


def test_trials_are_trained_as_one(sent: dict[str, Any]) -> None:
    module.sweep("train.ipynb", {"lr": [0.1, 0.01]}, together=True)
    assert sent["sweep"]["together"] is True


def test_how_many_trials_are_trained_as_one_is_told(tmp_path: Path) -> None:
    write(notebook("print(lr)", parameters="lr = [0.0]"), tmp_path / "n.ipynb")
    apart, together = (
        explain_sweep(tmp_path / "n.ipynb", {"lr": [0.1, 0.01]}, together=together).notes[-1]
        for together in (False, True)
    )
    assert apart.startswith("Trained as one: 0 of 2 trials. With --together all could be")
    assert together == "Trained as one: 2 of 2 trials, by one run of the notebook."
    with pytest.raises(InvalidInput, match="A search cannot train its trials as one"):
        explain_sweep(tmp_path / "n.ipynb", search={"lr": [1, 2]}, number=3, together=True)
