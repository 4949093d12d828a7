"""The state of a notebook execution, shared by the executing and the monitoring thread."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbclient.exceptions import CellExecutionError

from ....hub.attempts.spec import OUTPUT
from ..attempt.attempt import Attempt
from ..attempt.reporter import Report

if TYPE_CHECKING:
    from .engine import NotebookClient, NotebookManager


class NotebookState(Attempt):
    """The execution of a notebook.

    Attributes:
        ready: whether the kernel has answered.
        loop: the event loop that receives the kernel's messages while a cell runs.
        cells_ended: whether no cell is executed any more: a limit crossed then fails nothing.
        failure: index of the cell that raised an error, and the error.
        used_at_failure: memory of its processes in bytes when that error said that memory ran out;
            0 otherwise.
        fork_server: path of the socket of a fork server for kernels; empty without one.
    """

    def __init__(self, report: Report, *shared: Any) -> None:
        super().__init__(*shared)
        self.report = report
        self.output: Path = self.folder / OUTPUT
        self.manager: NotebookManager | None = None
        self.client: NotebookClient | None = None
        self.ready = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.failure: tuple[int, CellExecutionError] | None = None
        self.used_at_failure = 0
        self.cells_ended = False
        self.fork_server = self.order.fork_server

    def save(self) -> None:
        """Save in the thread that changes cells and outputs; called from another thread."""
        if self.loop is not None and self.manager is not None:
            with suppress(RuntimeError):  # the loop has just ended: the last save is in progress
                self.loop.call_soon_threadsafe(self.manager.save)

    def interrupt(self) -> None:
        if self.client is not None:
            self.client.shutdown_kernel = "immediate"  # do not wait for the kernel
        super().interrupt()
