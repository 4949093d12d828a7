"""Which cells of a notebook a kernel has finished, and why a state is not saved."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from threading import current_thread, main_thread
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from carrel.extensions.lab.notebook_state import NotebookStateOut, last_finished, save_state
from carrel.hub.attempts.snapshot_side import digest
from carrel.hub.attempts.snapshots import continuation_folder

EXECUTED = {1: digest("a = 1"), 2: digest("b = 2"), 3: digest("c = 3"), 4: digest("1 / 0")}


def code(source: str, count: int | None = None, *, failed: bool = False) -> Any:
    error = new_output("error", ename="E", evalue="", traceback=[])  # type: ignore[no-untyped-call]
    return new_code_cell(  # type: ignore[no-untyped-call]
        source, execution_count=count, outputs=[error] if failed else []
    )


@pytest.mark.parametrize(
    ("cells", "last"),
    [
        pytest.param([], (0, 0), id="an empty notebook"),
        pytest.param([code("a = 1", 1), code("b = 2", 2), code("c = 3")], (1, 2), id="in order"),
        pytest.param([code("b = 2", 2), code("a = 1", 1)], (1, 2), id="in another order"),
        pytest.param(
            [new_markdown_cell("# Title"), code("a = 1", 1), code("x")],  # type: ignore[no-untyped-call]
            (1, 1),
            id="after a text cell",
        ),
        pytest.param([code("a = 1", 1), code("b = 20", 2)], (0, 1), id="changed afterwards"),
        pytest.param([code("a = 1", 1), code("1 / 0", 4, failed=True)], (0, 1), id="failed"),
        pytest.param([code("a = 1", 7)], (0, 0), id="executed in another kernel"),
        pytest.param([code("a = 1\n", 1), code(""), code("b = 2", 2)], (2, 3), id="an empty cell"),
        pytest.param([code("x"), code("a = 1", 1)], (0, 0), id="not the first"),
    ],
)
def test_the_first_cell_that_has_not_finished_ends_them(
    cells: list[Any], last: tuple[int, int]
) -> None:
    notebook = new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    assert last_finished(notebook, EXECUTED) == last


class SilentClient:
    """Of a kernel that does not answer."""

    def start_channels(self, **_: bool) -> None: ...

    def stop_channels(self) -> None: ...

    def execute(self, code: str, **_: Any) -> str:
        return "request"

    async def get_shell_msg(self, timeout: float) -> dict[str, Any]:
        raise Empty


@dataclass
class SilentKernel:
    execution_state: str | None = "idle"

    def client(self) -> SilentClient:
        return SilentClient()


@dataclass
class BusyKernel:
    execution_state: str | None = "busy"

    def client(self) -> Any:
        raise AssertionError("a running cell is left alone")


def test_a_state_that_cannot_be_saved_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    nbformat.write(new_notebook(cells=[code("a = 1", 1)]), path)  # type: ignore[no-untyped-call]
    for kernel, why in (
        (None, "the notebook has no running kernel"),
        (BusyKernel(), "a cell is running, and the variables can be saved only when it has ended"),
    ):
        state = asyncio.run(save_state(path, kernel, tmp_path))
        assert state == NotebookStateOut(left_out={}, problem=why)
    assert [found.name for found in tmp_path.iterdir()] == ["a.ipynb"]


def test_a_state_that_another_call_deletes_meanwhile_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    nbformat.write(new_notebook(cells=[code("a = 1", 1)]), path)  # type: ignore[no-untyped-call]
    states = continuation_folder(tmp_path, "x").parent
    states.mkdir(parents=True)
    (states / "deleted").symlink_to(states / "nothing")
    state = asyncio.run(save_state(path, SilentKernel(), tmp_path))
    assert state.problem.startswith("a cell is running")


def test_the_notebook_is_read_once_and_never_in_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ipynb"
    nbformat.write(new_notebook(cells=[code("a = 1", 1)]), path)  # type: ignore[no-untyped-call]
    opened, readers = Path.open, []

    def recorded(file: Path, *mode: Any, **more: Any) -> Any:
        if file == path:
            readers.append(current_thread())
        return opened(file, *mode, **more)

    monkeypatch.setattr(Path, "open", recorded)
    state = asyncio.run(save_state(path, SilentKernel(), tmp_path))
    assert state.problem.startswith("a cell is running")
    assert len(readers) == 1
    assert main_thread() not in readers
