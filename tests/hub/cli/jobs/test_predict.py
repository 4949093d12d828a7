"""``carrel predict``: what it asks for, and what it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

FOUND = {"group": "cs101", "devices": 0, "seconds": 3600, "device_seconds": 0, "sentence": "Now."}


@pytest.fixture
def answer(service: FakeService) -> dict[str, Any]:
    """What the service answers; a test may change it."""
    found: dict[str, Any] = {**FOUND, "run_time": {
        "seconds": 120.0, "low": 60.0, "high": 240.0, "suggested_seconds": 300.0,
        "sentence": "About 2 min.",
    }}  # fmt: skip  # grouped
    bodies = found["bodies"] = []

    def say(handler: Any) -> None:
        bodies.append(json.loads(handler.raw))
        handler.say(200, {name: value for name, value in found.items() if name != "bodies"})

    service.extra["POST", f"{PREFIX}/requests/dry-run"] = say
    return found


@pytest.mark.usefixtures("answer")
def test_run_time_limit_cost_and_start_are_printed(carrel: Carrel) -> None:
    done = carrel("predict", "train.ipynb")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "Run time: About 2 min.",
        "Suggested time limit: 5 min.",
        "Cost: nothing: it holds no device.",
        "Start: Now.",
    ]


@pytest.mark.parametrize(
    ("options", "devices"), [((), 0), (("--model", "A100"), 1), (("--devices", "2"), 2)]
)
def test_devices_are_those_of_submit_and_a_model_has_one(
    answer: dict[str, Any], carrel: Carrel, options: tuple[str, ...], devices: int
) -> None:
    assert carrel("predict", "train.ipynb", *options).exit_code == 0
    (body,) = answer["bodies"]
    assert body["devices"] == devices


def test_without_predictions_it_says_so(answer: dict[str, Any], carrel: Carrel) -> None:
    answer["run_time"] = None
    assert "Run time: not known yet." in carrel("predict", "train.ipynb").stdout
