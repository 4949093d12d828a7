"""Save the state of a notebook in a session for a job: its variables, and which cells are done.

A fork of the kernel writes the variables, so that the kernel is blocked for milliseconds only. A
kernel that runs a cell is not interrupted: its state cannot be saved until the cell has ended. The
calls to the kernel are made in the event loop of its server, and files are read and written in
threads.
"""

from __future__ import annotations

import ast
import asyncio
import json
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Annotated, Any, Final, Protocol

import nbformat
from pydantic import Field

from ...hub.attempts import snapshot_side, snapshots
from ...hub.attempts.kernel_code import installation
from ...hub.attempts.snapshots import continuation_folder
from ...hub.attempts.spec import OUTPUT
from ...hub.schemas import Out

_ANSWER_SECONDS: Final = 5.0
_WRITING_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05
_LEFT_SECONDS: Final = 30 * 86_400.0
"""How long a saved state is kept whose job has not started."""
_BUSY = "a cell is running, and the variables can be saved only when it has ended"


class StateNotSaved(Exception):
    """The state cannot be saved; the text says why, as the part of a sentence."""


class KernelClient(Protocol):
    """A client of a kernel (``jupyter_client.AsyncKernelClient``), as far as it is used here."""

    def start_channels(self, **channels: bool) -> None: ...

    def stop_channels(self) -> None: ...

    def execute(self, code: str, **options: Any) -> str: ...

    async def get_shell_msg(self, timeout: float) -> dict[str, Any]: ...


class ConnectedKernel(Protocol):
    """The manager of a kernel, as far as it is used here."""

    execution_state: str | None

    def client(self) -> KernelClient: ...


class NotebookStateOut(Out):
    """The saved state of a notebook, from which a job goes on."""

    name: str = ""
    """The folder in which it is saved; empty if the job starts from its first cell."""
    start: int = 1
    """Number of the first code cell that the job executes."""
    cells: int = 0
    """Number of code cells."""
    left_out: Annotated[dict[str, str], Field(default_factory=dict)]
    """Reason by variable that could not be saved."""
    problem: str = ""
    """Why the job starts from its first cell."""


async def save_state(
    notebook: Path, kernel: ConnectedKernel | None, home: Path
) -> NotebookStateOut:
    """Save the state of a notebook in a new folder of the home.

    Args:
        notebook: as it is saved now.
        kernel: the one that runs the notebook, if there is one.
    """
    folder = continuation_folder(home, secrets.token_hex(16))
    try:
        return await _save_into(folder, notebook, kernel)
    except (StateNotSaved, OSError) as error:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return NotebookStateOut(left_out={}, problem=str(error))


def last_finished(document: Any, executed: Mapping[int, str]) -> tuple[int, int]:
    """Return index and number of the last code cell of those that the kernel has finished.

    The first cell that was not executed in this kernel, that was changed afterwards or that raised
    an error ends them. Both are 0 without any.

    Args:
        executed: digest of the source by execution count, as the kernel knows them.
    """
    last, number = 0, 0
    for index, cell in enumerate(document.cells):
        if cell.cell_type != "code":
            continue
        if cell.source.strip() and not _has_finished(cell, executed):
            break
        last, number = index, number + 1
    return last, number


def _has_finished(cell: Any, executed: Mapping[int, str]) -> bool:
    count = cell.get("execution_count")
    return executed.get(count) == snapshot_side.digest(cell.source) and not any(
        output.output_type == "error" for output in cell.outputs
    )


async def _save_into(
    folder: Path, notebook: Path, kernel: ConnectedKernel | None
) -> NotebookStateOut:
    if kernel is None:
        raise StateNotSaved("the notebook has no running kernel")
    if kernel.execution_state == "busy":
        raise StateNotSaved(_BUSY)
    document = await asyncio.to_thread(_copy, notebook, folder)
    number = await _begin(document, kernel, folder, notebook.parent)
    await _written(folder)
    found = await asyncio.to_thread(snapshots.find, folder)
    if found is None:
        raise StateNotSaved("the variables take more than 2 GiB, or cannot be saved")
    return NotebookStateOut(
        name=folder.name,
        start=number + 1,
        cells=sum(cell.cell_type == "code" for cell in document.cells),
        left_out=dict(found.left_out),
    )


async def _begin(document: Any, kernel: ConnectedKernel, folder: Path, start: Path) -> int:
    """Let a fork of the kernel save its variables; return the number of the last finished cell."""
    code = await asyncio.to_thread(installation, snapshot_side, str(folder), str(start))
    client = kernel.client()
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        call = "get_ipython().kernel.carrel_snapshots"
        executed = await _evaluate(client, f"{call}.executed()", code=code)
        digests = {int(count): digest for count, digest in json.loads(executed).items()}
        index, number = last_finished(document, digests)
        if not number:
            raise StateNotSaved("its first cell has not been executed in this session")
        if problem := await _evaluate(client, f"{call}.begin({index}, {number})"):
            raise StateNotSaved(problem)
    finally:
        client.stop_channels()
    return number


async def _written(folder: Path) -> None:
    """Wait until the fork has written the snapshot, or has ended without one."""
    ends = time.monotonic() + _WRITING_SECONDS
    while (folder / snapshots.WRITING).exists():
        if time.monotonic() > ends:
            raise StateNotSaved(f"saving the variables took more than {_WRITING_SECONDS:.0f} s")
        await asyncio.sleep(_LOOK_SECONDS)


async def _evaluate(client: KernelClient, expression: str, *, code: str = "") -> str:
    """Execute code in a kernel, and return the text that an expression gives afterwards.

    Raises:
        StateNotSaved: the kernel does not answer, or not with a value.
    """
    request = client.execute(
        code,
        silent=True,
        store_history=False,
        allow_stdin=False,
        user_expressions={"value": expression},
    )
    ends = time.monotonic() + _ANSWER_SECONDS
    while True:
        try:
            reply = await client.get_shell_msg(timeout=max(0.0, ends - time.monotonic()))
        except Empty:
            raise StateNotSaved(_BUSY) from None
        if reply["parent_header"].get("msg_id") == request:
            break
    value = reply["content"].get("user_expressions", {}).get("value", {})
    if value.get("status") != "ok":
        raise StateNotSaved("the kernel of the notebook cannot save its variables")
    return str(ast.literal_eval(value["data"]["text/plain"]))


def _copy(notebook: Path, folder: Path) -> Any:
    """Copy a notebook into the new folder of its state, and return it as it was copied."""
    _prune(folder.parent)
    folder.mkdir(mode=0o700, parents=True)
    content = notebook.read_bytes()
    (folder / OUTPUT).write_bytes(content)
    try:
        return nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise StateNotSaved(f"the notebook cannot be read: {error}") from error


def _prune(folder: Path) -> None:
    """Delete states that are too old."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another call deletes it, or its job takes it
            if time.time() - path.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
