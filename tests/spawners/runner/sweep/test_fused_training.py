"""A sweep by ``fuse_train`` in one run has the losses of the same sweep trial by trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.attempts.reports import read_reports
from carrel.hub.attempts.trials import read_trials, reports_name
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.requests import SweepOrder

from .... import torch_packages
from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, printed, read

RATES = [0.1, 0.03, 0.01]
PACKAGES = torch_packages.PACKAGES
DATA = f"""\
import sys
sys.path.append({str(PACKAGES.folder)!r})
import carrel, torch
torch.set_num_threads(1)
def net():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
numbers = torch.Generator().manual_seed(1)
batches = [
    (torch.randn(20, 8, generator=numbers), torch.randint(3, (20,), generator=numbers))
    for _ in range(6)
]
loss = torch.nn.functional.cross_entropy"""
ONE_BY_ONE = """\
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for step, (inputs, targets) in enumerate(batches):
    found = loss(model(inputs), targets)
    optimizer.zero_grad()
    found.backward()
    optimizer.step()
    carrel.report("loss", found, step)"""
TOGETHER = """\
models = [net() for _ in lr]
training = carrel.execution.fuse_train(models, loss, learning_rates=lr, seconds=0.0)
for step, (inputs, targets) in enumerate(batches):
    carrel.report("loss", training.step(inputs, targets), step)
print(len(models))"""


def ran(desk: Desk, nb: Any, folder: str, **options: bool) -> LaunchOrder:
    order = desk.order(nb)
    sweep = SweepOrder(space={"grid": {"lr": RATES}}, trials=len(RATES), **options)
    order = replace(
        order,
        job=replace(order.job, sweep=sweep),
        folder=order.folder.with_name(folder),
        lease_id=f"{folder}.1",
    )
    order.folder.mkdir()
    desk.leases.append(order.lease_id)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0, desk.service.ended
    return order


def losses(order: LaunchOrder) -> list[list[float]]:
    names = [reports_name(number) for number in range(1, len(RATES) + 1)]
    return [list(read_reports(order.folder, name)["loss"].values) for name in names]


def test_the_losses_of_trials_trained_as_one_are_those_of_a_sweep_of_plain_training(
    desk: Desk,
) -> None:
    PACKAGES.need()
    plain = ran(desk, notebook(DATA, ONE_BY_ONE, parameters="lr = 0.5"), "plain")
    nb = notebook(DATA, TOGETHER, parameters="lr = [0.5]")
    joint = ran(desk, nb, "joint", together=True)
    assert printed(read(joint.folder / "output.ipynb")) == "3\n"
    expected = losses(plain)
    assert [len(each) for each in expected] == [6, 6, 6]
    assert expected[0] != expected[1] != expected[2]
    for found, values in zip(losses(joint), expected, strict=True):
        assert found == pytest.approx(values, rel=1e-4)
    last = [read_trials(joint.folder)[number].reported["loss"] for number in (1, 2, 3)]
    assert last == [each[-1] for each in losses(joint)]
