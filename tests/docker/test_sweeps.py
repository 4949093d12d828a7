"""Sweeps in real containers: forks of the kernel, and a second attempt in a new container."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.attempts.trials import hand_over_trials, notebook_name, read_trials
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.requests import SweepOrder

from ..fake_service import eventually
from ..spawners.notebooks import notebook, printed, read
from .kit import Site

pytestmark = pytest.mark.docker

TRIAL = """
import carrel, os, pathlib
pathlib.Path(os.environ["CARREL_OUTPUT_DIR"], "made.txt").write_text(str(x))
carrel.report("loss", x)
if x == 2 and not os.path.exists("once"):
    open("once", "w").close()
    raise ValueError("once")
print(x, pid == os.getpid())
"""


def states(order: LaunchOrder) -> dict[int, str]:
    return {number: str(each.state) for number, each in sorted(read_trials(order.folder).items())}


def test_trials_are_forks_in_one_container_and_are_handed_over(site: Site) -> None:
    nb = notebook("import os; pid = os.getpid()", TRIAL, parameters="x = 0")
    nb.cells[2].metadata["tags"] = ["carrel-share"]
    sweep = SweepOrder(space={"grid": {"x": [1, 2, 3]}}, trials=3)
    order = site.order(nb)
    order = replace(order, job=replace(order.job, sweep=sweep))
    site.backend.start(order)
    site.service.wait_for_event("ended")
    assert states(order) == {1: "succeeded", 2: "failed", 3: "succeeded"}
    assert read_trials(order.folder)[3].reported == {"loss": 3.0}

    again = site.order(nb)
    again = replace(again, job=replace(again.job, sweep=sweep))
    hand_over_trials(order.folder, again.folder)
    site.backend.start(again)
    eventually(lambda: "carrel: Ran 3 trials." in site.log(again))
    assert states(again) == dict.fromkeys((1, 2, 3), "succeeded")
    files = again.folder / "files"
    for number in (1, 2, 3):
        alone = number == 2  # the only trial that was left: nothing to fork for
        assert printed(read(files / notebook_name(number))) == f"{number} {alone}\n"
        assert (files / f"trial-000{number}" / "made.txt").read_text() == str(number)
    assert "[trial 1]" not in site.log(again)
