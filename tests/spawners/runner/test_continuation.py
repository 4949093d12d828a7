"""The notebook of a session goes on as a job, with the variables of its kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager

from carrel.extensions.lab.notebook_state import NotebookStateOut, save_state
from carrel.hub.attempts import snapshots
from carrel.hub.attempts.snapshots import continuation_folder

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook, printed, read, statuses, text_of

CELLS = (
    "import threading\ndef double(x):\n    return 2 * x\nlock, data = threading.Lock(), [1, 2]",
    "print('in the session')\ndata.append(double(5))",
    "print(data, double(4), 'lock' in globals())",
)


async def session(path: Path, home: Path, executed: int) -> NotebookStateOut:
    """Execute the first cells of a notebook in a kernel, and save its state there."""
    manager: Any = AsyncKernelManager(kernel_name="python3")
    manager.execution_state = "idle"  # as the manager of a Jupyter server has it
    await manager.start_kernel(cwd=str(path.parent))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        book = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        for cell in [cell for cell in book.cells if cell.cell_type == "code"][:executed]:
            reply: Mapping[str, Any] = await client.execute_interactive(
                cell.source, output_hook=lambda message: None
            )
            cell.execution_count = reply["content"]["execution_count"]
        nbformat.write(book, path)  # type: ignore[no-untyped-call]
        return await save_state(path, manager, home)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


def run(desk: Desk, state: NotebookStateOut) -> tuple[Any, str]:
    order = desk.order(text_of(notebook(*CELLS)))
    order = replace(order, job=replace(order.job, continuation=state.name, workdir="deep"))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    return read(order.folder / "output.ipynb"), (order.folder / "log.txt").read_text()


def test_a_job_goes_on_after_the_last_finished_cell_of_a_session(desk: Desk) -> None:
    home = desk.order("").home
    path = home / "deep" / "train.ipynb"
    path.parent.mkdir()
    path.write_text(text_of(notebook(*CELLS)))
    state = asyncio.run(session(path, home, 2))
    assert (state.start, state.cells, state.problem) == (3, 3, "")
    assert list(state.left_out) == ["lock"]
    executed, log = run(desk, state)
    assert set(statuses(executed)) == {"completed"}
    assert printed(executed) == "[1, 2, 10] 8 False\n"
    assert "carrel: the job goes on after 2 cells of an earlier execution" in log
    assert "carrel: lock could not be saved: TypeError: cannot pickle" in log
    assert not continuation_folder(home, state.name).exists()
    # A second job for the same state finds nothing.
    executed, log = run(desk, state)
    assert printed(executed) == "in the session\n[1, 2, 10] 8 True\n"
    assert "starts from its first cell: the variables that the session saved are missing" in log


def test_a_next_attempt_does_not_need_the_saved_state_again(desk: Desk) -> None:
    home = desk.order("").home
    path = home / "deep" / "train.ipynb"
    path.parent.mkdir()
    path.write_text(text_of(notebook(*CELLS[:2], "1 / 0")))
    state = asyncio.run(session(path, home, 2))
    order = desk.order(path.read_text())
    order = replace(order, job=replace(order.job, continuation=state.name, workdir="deep"))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 1
    found = snapshots.find(order.folder)
    assert found is not None
    assert found.number == 2
