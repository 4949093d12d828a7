"""The service is killed between two cells of a notebook: the job goes on to the same result."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import nbformat
import pytest

from ..e2e.support import Installation, eventually
from .audit import audit
from .support import healthy, home, submit

USER = "student3"
CELLS = 10
FIRST = """\
import os, pathlib, random, time
get_ipython().kernel.carrel_snapshots.pause_factor = 0
random.seed(1)
total, trace = 0.0, []
gates = pathlib.Path.home() / "gates"
def enter(number):
    (gates / "entered").write_text(f"{number} {os.getpid()} ")
    while not (gates / f"open-{number}").exists():
        time.sleep(0.02)
def step(number):
    global total
    total += random.random()
    trace.append(number)
    time.sleep(0.12)
    return total
print(step(1))"""
"""Each cell takes the tenth of a second after which it is saved."""
BOOK = (
    FIRST,
    *(f"enter({n}); print(step({n}))" for n in range(2, CELLS)),
    f"enter({CELLS}); print(step({CELLS}), trace)",
)
BOUNDARIES = [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3, 4, 6, 7, 8, 9))]


@pytest.fixture
def gates(site: Installation) -> Iterator[Path]:
    """The folder in which each cell but the first waits for a file before it works."""
    folder = home(site, USER) / "gates"
    folder.mkdir(exist_ok=True)
    yield folder
    for path in folder.iterdir():
        path.unlink()


def open_gates(gates: Path, *numbers: int) -> None:
    for number in numbers:
        (gates / f"open-{number}").touch()


def kernel_at(gates: Path, number: int) -> int:
    """Wait until a cell has begun; return the process of its kernel."""

    def entered() -> int:
        try:
            found, pid, _ = (gates / "entered").read_text().split(" ")
        except (OSError, ValueError):
            return 0
        return int(pid) if int(found) == number else 0

    return eventually(entered, f"cell {number} has begun", every=0.02)


def is_writing(site: Installation, job: str) -> bool:
    return any(site.state.glob(f"outputs/**/{job}/**/snapshot.part"))


def saved_after(site: Installation, job: str, number: int) -> bool:
    """Whether the variables after a cell, or after a later one, are saved."""
    for path in site.state.glob(f"outputs/**/{job}/**/snapshot.json"):
        found: dict[str, Any] = json.loads(path.read_text())
        return int(found["number"]) >= number
    return False


def printed(site: Installation, job: str) -> list[str]:
    answer = site.api("GET", f"/requests/{job}/output", user=USER)
    cells = nbformat.reads(answer.text, as_version=4).cells  # type: ignore[no-untyped-call]
    return ["".join(output.text for output in cell.outputs) for cell in cells]


def expected() -> list[str]:
    """Return what the cells of an execution without faults print."""
    random, total, lines = Random(1), 0.0, []  # noqa: S311  # as the notebook does
    for _ in range(CELLS):
        total += random.random()
        lines.append(f"{total}\n")
    lines[-1] = f"{total} {list(range(1, CELLS + 1))}\n"
    return lines


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_job_goes_on_after_the_service_was_killed_after_a_cell(
    site: Installation, gates: Path, boundary: int
) -> None:
    open_gates(gates, *range(2, boundary + 1))
    job = submit(site, USER, *BOOK, devices=0)
    kernel_at(gates, boundary + 1)
    site.kill("service")
    open_gates(gates, *range(boundary + 1, CELLS + 1))
    healthy(site)
    ended = site.wait_for(job, "succeeded", user=USER)
    assert ended["lease"]["epoch"] == 1
    assert ended["progress"]["done"] == CELLS
    assert printed(site, job) == expected()
    audit(site.state)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_job_whose_kernel_was_killed_with_the_service_is_resumed(
    site: Installation, gates: Path, boundary: int
) -> None:
    open_gates(gates, *range(2, boundary))
    job = submit(site, USER, *BOOK, devices=0)
    if boundary > 1:
        # No snapshot is made while an earlier one is written.
        kernel_at(gates, boundary)
        eventually(lambda: not is_writing(site, job), "the earlier snapshot is complete")
        open_gates(gates, boundary)
    kernel = kernel_at(gates, boundary + 1)
    eventually(lambda: saved_after(site, job, boundary), "the variables are saved")
    site.kill("service")
    os.kill(kernel, signal.SIGKILL)
    healthy(site)
    site.wait_for(job, "failed", user=USER)
    open_gates(gates, *range(boundary + 1, CELLS + 1))
    answer = site.api("POST", f"/requests/{job}/resume", user=USER, json={}).json()
    assert (answer["start"], answer["cells"]) == (boundary + 1, CELLS)
    assert answer["left_out"] == {}
    resumed = answer["request"]["id"]
    site.wait_for(resumed, "succeeded", user=USER)
    assert printed(site, resumed) == expected()
    audit(site.state)
