"""``carrel.sweep``: the body that it submits."""

from __future__ import annotations

from typing import Any

import pytest

from carrel.extensions import sweep as module
from carrel.hub.errors import InvalidInput
from carrel.hub.sweeps.space_syntax import space_from_json


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
