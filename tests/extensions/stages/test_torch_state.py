"""States of PyTorch: models, optimizers and schedulers go on bit for bit, where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import carrel

torch = pytest.importorskip("torch")
STEPS = 8


def start() -> Any:
    layers = torch.nn
    model = layers.Sequential(
        layers.Linear(6, 16), layers.BatchNorm1d(16), layers.Dropout(0.2), layers.Linear(16, 1)
    )
    optimizer = torch.optim.Adam(model.parameters())
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    return {"model": model, "train": (optimizer, decay), "seen": torch.zeros(1)}


def step(state: Any, values: Mapping[str, Any], number: int) -> Any:
    optimizer, decay = state["train"]
    optimizer.param_groups[0]["weight_decay"] = values["weight_decay"]
    inputs = torch.randn(values["batch"], 6)
    optimizer.zero_grad()
    loss = (state["model"](inputs) - inputs[:, :1].sin()).square().mean()
    loss.backward()
    optimizer.step()
    decay.step()
    state["seen"] += values["batch"]
    return {"loss": loss, "seen": state["seen"]}


def test_trials_have_the_results_of_running_alone() -> None:
    decays = [[(0, 0.0), (at, then)] for at in (2, 5) for then in (0.1, 0.01)]
    schedules = carrel.schedules(weight_decay=[0.0, *decays], batch=[8, [(0, 8), (4, 16)]])
    study = carrel.stages(start, step, schedules, steps=STEPS, objective="loss")
    assert study.saved.run == study.saved.tree < study.saved.alone
    for number, each in enumerate(schedules, 1):
        alone = carrel.stages(start, step, [each], steps=STEPS, objective="loss")
        for name in ("loss", "seen"):
            assert study.curve(number, name) == alone.curve(1, name)
