"""Keep what the cells of a kernel put out until a saved notebook has it.

JupyterLab shows the output of a cell only in the page that ran it: what comes while no page is open
is lost. The journal keeps it on disk, by execution and cell, and a page that is opened later puts
it into its open document. A notebook file is never written here.

An execution leaves the journal when its cell runs again, when a page has saved its notebook with
all of it, or when the kernel is restarted by its user.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypedDict

from .bounded_outputs import SEGMENT_BYTES, BoundedOutputs
from .output_fold import CLEAR, OUTPUTS, UPDATE, fold
from .output_segment import FILE_MODE, JournalEntry

KERNEL_BYTES: Final = 64 << 20
"""The outputs of the oldest finished cells are left out beyond that."""
MOST_EXECUTIONS: Final = 1000
LONGEST_CODE: Final = 100_000
KEPT: Final = OUTPUTS | {CLEAR, UPDATE}
"""Messages that change the outputs of a cell."""
REQUEST, INPUT, END = "request", "execute_input", "end"
_NOTEBOOK = "notebook.json"


class ExecutionState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """A request of a page to execute a cell.

    Attributes:
        request: the id of the message; the outputs name it as their parent.
        cell: the id of the cell.
        client: the session of the page that asked.
        in_notebook: a cell of a notebook, not one of a console on the same kernel.
    """

    request: str
    cell: str
    client: str
    in_notebook: bool


class ExecutionOut(TypedDict):
    """An execution as a page reads it.

    Attributes:
        ended_at: when it has ended, in seconds since the epoch.
        heard: outputs that the kernel sent, also those that another place shows.
        lost: messages that could not be written.
        live: the page that asked is connected.
        whole: ``entries`` begin with the first, without what was written over.
    """

    request: str
    cell: str
    client: str
    in_notebook: bool
    state: str
    count: int | None
    code: str
    ended_at: float | None
    heard: int
    lost: int
    live: bool
    whole: bool
    entries: list[JournalEntry]


class JournalOut(TypedDict):
    """What has changed in a journal; ``requests`` are all executions that it still has."""

    seq: int
    requests: list[str]
    executions: list[ExecutionOut]


@dataclass(slots=True)
class CellExecution:
    """One execution of a cell and its outputs."""

    asked: CellRequest
    outputs: BoundedOutputs
    state: ExecutionState = ExecutionState.QUEUED
    count: int | None = None
    code: str = ""
    ended_at: float | None = None
    heard: int = 0
    lost: int = 0
    captured: bool = False
    """An Output widget takes the outputs, in the page that asked."""

    @classmethod
    def load(cls, folder: Path, name: str) -> CellExecution | None:
        outputs = BoundedOutputs.load(folder, name)
        entries = outputs.read()
        if not entries or entries[0]["type"] != REQUEST:
            return None
        execution = cls(CellRequest(**entries[0]["content"]), outputs)
        for entry in entries:
            execution.follow(entry["type"], entry["content"])
        return execution

    def follow(self, kind: str, content: dict[str, Any]) -> None:
        if kind == INPUT:
            self.state = ExecutionState.RUNNING
            self.count, self.code = content.get("execution_count"), str(content.get("code", ""))
        elif kind == END:
            self.state, self.ended_at = ExecutionState.ENDED, content.get("at")


@dataclass(slots=True)
class OutputJournal:
    """The journal of one kernel.

    Attributes:
        folder: its files; made by the first execution.
        notebook: path of the notebook, as the newest page has named it.
        seq: number of the last change.
    """

    folder: Path
    kernel_bytes: int = KERNEL_BYTES
    segment_bytes: int = SEGMENT_BYTES
    clock: Callable[[], float] = time.time
    notebook: str = ""
    seq: int = 0
    _executions: dict[str, CellExecution] = field(default_factory=dict)
    _names: int = 0
    _space: int = 0
    """Bytes until the bound of the kernel is looked at again."""

    @classmethod
    def load(cls, folder: Path) -> OutputJournal:
        """Read the files of an earlier server, if there are any."""
        journal = cls(folder)
        journal.notebook = notebook_of(folder)
        names = {path.name.partition(".")[0] for path in folder.glob("*.head.jsonl")}
        for name in sorted(filter(str.isdecimal, names), key=int):
            journal._names = int(name)
            if (execution := CellExecution.load(folder, name)) is not None:
                journal._executions[execution.asked.request] = execution
                journal.seq = max(journal.seq, execution.outputs.last)
        return journal

    def name_notebook(self, path: str) -> None:
        """Remember whose outputs these are, for the time after the kernel."""
        if path and path != self.notebook:
            self.notebook = path
            self._write_notebook()

    def begin(self, asked: CellRequest) -> None:
        """Add an execution in place of earlier ones of its cell."""
        self._remove([it for it in self._executions.values() if it.asked.cell == asked.cell])
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, mode=0o700)
            self._write_notebook()
        outputs = BoundedOutputs(self.folder, self._next_name(), self.segment_bytes)
        execution = CellExecution(asked, outputs)
        self._append(
            execution,
            REQUEST,
            {
                "request": asked.request,
                "cell": asked.cell,
                "client": asked.client,
                "in_notebook": asked.in_notebook,
            },
        )
        self._executions[asked.request] = execution
        self._bound()

    def hears(self, request: str) -> bool:
        """Whether messages with this parent belong to an execution."""
        return request in self._executions

    def client_of(self, request: str) -> str:
        """The session of the page that asked for an execution."""
        return self._executions[request].asked.client

    def hear(
        self, request: str, kind: str, content: dict[str, Any], *, is_live: bool = False
    ) -> None:
        """Keep a message of the kernel, if it shows in a cell or ends an execution.

        Args:
            request: the parent of the message.
            kind: the type of the message.
            content: its content.
            is_live: the page that asked is connected.
        """
        execution = self._executions[request]
        if kind == "status":
            if content.get("execution_state") == "idle":
                self._end(execution)
        elif kind == INPUT:
            code = str(content.get("code", ""))[:LONGEST_CODE]
            self._append(
                execution, INPUT, {"execution_count": content.get("execution_count"), "code": code}
            )
        elif kind in KEPT:
            execution.heard += 1
            if not (execution.captured and is_live):
                before = execution.outputs.size
                self._append(execution, kind, content)
                self._space -= execution.outputs.size - before
                if self._space < 0:
                    self._bound()
        elif kind == "comm_msg" and (taker := _taken_request(content)) is not None:
            execution.captured = taker == request

    def die(self) -> None:
        """End what was queued or running: the kernel has died."""
        for execution in self._executions.values():
            self._end(execution)

    def clear(self) -> None:
        """Remove all executions: the kernel was restarted by its user."""
        self._remove(list(self._executions.values()))

    def settle(self, requests: Iterable[str]) -> None:
        """Remove finished executions, which a saved notebook has."""
        found = [self._executions[it] for it in requests if it in self._executions]
        self._remove([it for it in found if it.state is ExecutionState.ENDED])

    def adopt(self, folder: Path) -> None:
        """Take over what another kernel of the notebook has left, but no older run of a cell."""
        other = OutputJournal.load(folder)
        other.die()
        cells = {execution.asked.cell for execution in self._executions.values()}
        self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        for execution in other._executions.values():
            if execution.asked.cell not in cells:
                self.seq += 1
                execution.outputs.move(self.folder, self._next_name(), self.seq)
                self._executions[execution.asked.request] = execution
        other.close()
        self._write_notebook()
        shutil.rmtree(folder, ignore_errors=True)
        self._bound()

    def changes(self, after: int, is_live: Callable[[str], bool]) -> JournalOut:
        """Return the executions that have changed after this number.

        Args:
            after: the ``seq`` of an earlier answer; -1 at first.
            is_live: whether the page of this session is connected.
        """
        executions = [
            _execution_out(execution, after, is_live)
            for execution in self._executions.values()
            if execution.outputs.last > after
        ]
        return {
            "seq": self.seq,
            "requests": list(self._executions),
            "executions": executions,
        }

    def close(self) -> None:
        for execution in self._executions.values():
            execution.outputs.close()

    def _end(self, execution: CellExecution) -> None:
        if execution.state is not ExecutionState.ENDED:
            self._append(execution, END, {"at": self.clock()})
            execution.outputs.close()

    def _append(self, execution: CellExecution, kind: str, content: dict[str, Any]) -> None:
        self.seq += 1
        execution.follow(kind, content)
        try:
            execution.outputs.append(self.seq, kind, content)
        except OSError:
            execution.lost += 1
            raise

    def _bound(self) -> None:
        """Leave out what is too much, oldest first; an execution that is not over stays."""
        ended = [it for it in self._executions.values() if it.state is ExecutionState.ENDED]
        self._remove(ended[: max(0, len(self._executions) - MOST_EXECUTIONS)])
        size = sum(execution.outputs.size for execution in self._executions.values())
        for execution in ended:
            if size <= self.kernel_bytes:
                break
            size -= execution.outputs.size
            self.seq += 1
            execution.outputs.drop_outputs(self.seq)
            size += execution.outputs.size
        self._space = max(self.kernel_bytes - size, self.kernel_bytes // 64)

    def _remove(self, executions: Sequence[CellExecution]) -> None:
        for execution in executions:
            del self._executions[execution.asked.request]
            execution.outputs.delete()
        if not self._executions and self.folder.is_dir():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _next_name(self) -> str:
        self._names += 1
        return str(self._names)

    def _write_notebook(self) -> None:
        if self.notebook and self.folder.is_dir():
            path = self.folder / _NOTEBOOK
            path.touch(mode=FILE_MODE)
            path.write_text(json.dumps(self.notebook), encoding="ascii")


def notebook_of(folder: Path) -> str:
    """Return the path of the notebook of a journal; empty if it is not known."""
    with suppress(OSError, ValueError):
        path = json.loads((folder / _NOTEBOOK).read_text(encoding="ascii"))
        if isinstance(path, str):
            return path
    return ""


def _taken_request(content: dict[str, Any]) -> str | None:
    """Return the request whose outputs an Output widget takes from now on; empty for none."""
    data = content.get("data")
    state = data.get("state") if isinstance(data, dict) else None
    taken = state.get("msg_id") if isinstance(state, dict) else None
    return taken if isinstance(taken, str) else None


def _execution_out(
    execution: CellExecution, after: int, is_live: Callable[[str], bool]
) -> ExecutionOut:
    outputs, asked = execution.outputs, execution.asked
    whole = after < outputs.rewritten_at or after < 0
    entries = fold(outputs.read()) if whole else outputs.read(after)
    return {
        "request": asked.request,
        "cell": asked.cell,
        "client": asked.client,
        "in_notebook": asked.in_notebook,
        "state": execution.state,
        "count": execution.count,
        "code": execution.code,
        "ended_at": execution.ended_at,
        "heard": execution.heard,
        "lost": execution.lost,
        "live": is_live(asked.client),
        "whole": whole,
        "entries": [it for it in entries if it["type"] not in (REQUEST, INPUT, END)],
    }
