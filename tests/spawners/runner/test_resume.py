"""A notebook goes on after the last cell whose variables were saved."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.attempts import snapshots
from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.records.leases import Handle
from carrel.hub.records.notices import NoticeKind, StopNotice

from ...fake_service import eventually
from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook, printed, read, statuses

PAUSE = """\
import time
saves = lambda: get_ipython().kernel.carrel_snapshots
saves().pause_factor = 0
while saves().is_writing():
    time.sleep(0.01)
time.sleep(0.12)
"""
"""Lets each cell be saved: it takes a tenth of a second, and waits for the snapshot before it."""
STEPS = 10
FIRST = PAUSE + (
    "import random, numpy\nrandom.seed(1); numpy.random.seed(2)\ntotal, trace = 0.0, []\n"
    "def step(number):\n    global total\n    total += random.random() + numpy.random.random()\n"
    "    trace.append(number)\n    return total\n"
    "class Model:\n    def weight(self):\n        return total\n"
    "model = Model(); alias = trace"
)
BOOK = notebook(
    FIRST,
    *(f"{PAUSE}print(step({number}))" for number in range(2, STEPS)),
    "print(trace, total, model.weight() == total, alias is trace)",
)


def run(desk: Desk, order: LaunchOrder) -> int | None:
    return wait_for_end(desk, order, desk.backend.start(order))


def is_dead(desk: Desk, order: LaunchOrder, handle: Handle) -> bool:
    status = desk.backend.status({order.lease_id: handle})[order.lease_id]
    return status.life is ProcessState.DEAD


def next_attempt(desk: Desk, before: LaunchOrder, **changes: object) -> LaunchOrder:
    """Return the order of an attempt that goes on with an earlier one, as the service makes it."""
    order = desk.order(input_text(before))
    found = snapshots.find(before.folder)
    assert found is not None
    snapshots.hand_over(found, order.folder)
    return replace(order, job=replace(before.job, **changes))  # type: ignore[arg-type]


def input_text(order: LaunchOrder) -> str:
    return order.input_path.read_text()


def result(order: LaunchOrder) -> str:
    executed = read(order.folder / "output.ipynb")
    assert set(statuses(executed)) == {"completed"}
    return printed(executed)


@pytest.fixture
def expected(desk: Desk) -> str:
    order = desk.order(BOOK)
    assert run(desk, order) == 0
    assert not list(order.folder.glob("snapshot*"))
    return result(order)


@pytest.mark.parametrize("victim", ["runner", "kernel"])
@pytest.mark.parametrize(
    "last", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 5, 6, 7, 8, 9))]
)
def test_a_job_that_was_killed_after_a_cell_goes_on_to_the_same_result(
    desk: Desk, expected: str, victim: str, last: int
) -> None:
    waiting = "import os, time\nopen('here', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    cells = [cell.source for cell in BOOK.cells if cell.cell_type == "code"]
    changed = notebook(*cells[:last], waiting, *cells[last:])
    order = desk.order(changed)
    handle = desk.backend.start(order)
    eventually(lambda: (order.home / "here").exists() and (order.home / "here").read_text())
    eventually(lambda: not (order.folder / snapshots.WRITING).exists())
    kernel = int((order.home / "here").read_text())
    os.kill(handle.pid if victim == "runner" else kernel, signal.SIGKILL)
    eventually(lambda: is_dead(desk, order, handle))
    found = snapshots.find(order.folder)
    assert found is not None
    assert found.number == last
    again = next_attempt(desk, order)
    again.input_path.write_text(desk_text(notebook(*cells[:last], "pass", *cells[last:])))
    assert run(desk, again) == 0
    assert result(again) == expected
    done = [cell for cell in read(again.folder / "output.ipynb").cells if "outputs" in cell]
    assert [bool(cell.metadata.get("carrel")) for cell in done] == [True] * last + [False] * (
        len(cells) + 1 - last
    )


def desk_text(book: object) -> str:
    import nbformat  # noqa: PLC0415

    text: str = nbformat.writes(book)  # type: ignore[no-untyped-call]
    return text


def test_a_halted_notebook_ends_after_its_current_cell_and_goes_on_from_there(
    desk: Desk, expected: str
) -> None:
    cells = [cell.source for cell in BOOK.cells if cell.cell_type == "code"]
    waits = (
        "import pathlib, time\npathlib.Path('here').touch()\n"
        "while not pathlib.Path('go').exists():\n    time.sleep(0.01)"
    )
    book = notebook(*cells[:4], waits, *cells[4:])
    order = desk.order(book)
    handle = desk.backend.start(order)
    eventually((order.home / "here").exists)
    notice = StopNotice(
        kind=NoticeKind.HALT, message="Halted.", given_at=1.0, stops_at=2.0, group=""
    )
    desk.backend.request_checkpoint(order.lease_id, handle, order.folder, notice)
    (order.home / "go").touch()
    wait_for_end(desk, order, handle)
    executed = read(order.folder / "output.ipynb")
    assert statuses(executed)[:6] == ["completed"] * 5 + ["pending"]
    assert executed.metadata.carrel["outcome"] == "halted"
    assert executed.metadata.carrel["message"] == "It stopped after cell 5 of 11."
    found = snapshots.find(order.folder)
    assert found is not None
    assert found.number == 5  # although that cell alone may have been too short to be saved
    again = next_attempt(desk, order)
    assert run(desk, again) == 0
    assert result(again) == expected


def test_a_failed_cell_is_corrected_and_executed_with_the_saved_variables(desk: Desk) -> None:
    cells = [
        f"{PAUSE}data = list(range(10))\nprint('loaded')",
        "print(dta)",
        "print('end', len(data))",
    ]
    order = desk.order(notebook(*cells))
    assert run(desk, order) == 1
    again = next_attempt(desk, order)
    again.input_path.write_text(desk_text(notebook(cells[0], "print(sum(data))", cells[2])))
    assert run(desk, again) == 0
    assert result(again) == "loaded\n45\nend 10\n"
    log = (again.folder / "log.txt").read_text()
    assert "the job goes on after 1 cell of an earlier execution" in log
    assert "loaded" not in log


def test_variables_that_cannot_be_saved_are_named_and_the_others_are_there(desk: Desk) -> None:
    source = f"{PAUSE}import threading\nlock = threading.Lock()\nfile = open('x', 'w')\nvalue = [1]"
    order = desk.order(notebook(source, "1 / 0", "print(value, 'lock' in globals())"))
    assert run(desk, order) == 1
    again = next_attempt(desk, order)
    again.input_path.write_text(
        desk_text(notebook(source, "pass", "print(value, 'lock' in globals())"))
    )
    assert run(desk, again) == 0
    assert result(again) == "[1] False\n"
    log = (again.folder / "log.txt").read_text()
    assert "carrel: lock could not be saved: TypeError: cannot pickle" in log
    assert "carrel: file could not be saved" in log


def test_a_changed_cell_before_the_saved_one_runs_everything_again(desk: Desk) -> None:
    cells = [f"{PAUSE}value = 1", f"{PAUSE}value += 1", "1 / 0"]
    order = desk.order(notebook(*cells))
    assert run(desk, order) == 1
    again = next_attempt(desk, order)
    again.input_path.write_text(desk_text(notebook("value = 10", cells[1], "print(value)")))
    assert run(desk, again) == 0
    assert result(again) == "11\n"
    assert (
        "starts from its first cell: a cell before the saved one was changed"
        in (again.folder / "log.txt").read_text()
    )
    # With an explicit cell, the saved variables are used all the same.
    explicit = next_attempt(desk, order, from_cell=2)
    explicit.input_path.write_text(desk_text(notebook("value = 10", cells[1], "print(value)")))
    assert run(desk, explicit) == 0
    assert result(explicit) == "3\n"


@pytest.mark.parametrize("damage", ["truncated", "of another Python", "of a missing module"])
def test_a_snapshot_that_cannot_be_loaded_runs_everything_again(desk: Desk, damage: str) -> None:
    cells = [f"{PAUSE}value = [1, 2, 3]", "print(value.x)"]
    order = desk.order(notebook(*cells))
    assert run(desk, order) == 1
    again = next_attempt(desk, order)
    pickle = again.folder / snapshots.RESUMED_PICKLE
    data = pickle.read_bytes()
    pickle.unlink()
    bad = {
        "truncated": data[:-10],
        "of another Python": b"\x80\x63" + data[2:],
        "of a missing module": b"cnot_there\nname\n.",
    }
    pickle.write_bytes(bad[damage])
    again.input_path.write_text(desk_text(notebook(cells[0], "print(value)")))
    assert run(desk, again) == 0
    assert result(again) == "[1, 2, 3]\n"
    assert "the saved variables cannot be loaded" in (again.folder / "log.txt").read_text()


def test_files_that_are_no_snapshot_are_ignored(tmp_path: Path) -> None:
    assert snapshots.find(tmp_path) is None
    (tmp_path / "output.ipynb").write_text("{}")
    (tmp_path / "a.pkl").write_text("")
    for text in ("", "[]", "{", '{"file": "../a", "index": 0, "number": 1, "python": []}', "null"):
        (tmp_path / snapshots.SNAPSHOT).write_text(text)
        assert snapshots.find(tmp_path) is None
    (tmp_path / snapshots.SNAPSHOT).write_text(
        '{"file": "a.pkl", "index": 0, "number": 1, "python": [3, 11]}'
    )
    assert snapshots.find(tmp_path) is not None
    (tmp_path / "a.pkl").unlink()
    (tmp_path / "a.pkl").symlink_to("/etc/passwd")
    assert snapshots.find(tmp_path) is None
