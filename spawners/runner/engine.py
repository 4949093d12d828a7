"""How papermill executes the notebook: its loop over the cells, with two promises added.

What is saved is always a whole file, and it never says of a cell that it was completed when
it was not. (Papermill's own loop calls every cell completed after its kernel has died.)
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, cast

import nbformat
import zmq
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.execute import remove_error_markers
from papermill.log import logger

from ...hub.ports.records import CauseCode, Json
from .ending import Ending, plain
from .order import Order

ENGINE = "carrel"
AUTOSAVE_SECONDS = 5
INJECTED_TAG = "injected-parameters"
START_TIMEOUT_SECONDS = 120


class Stopped(Exception):
    """The attempt was asked to stop between two cells."""


Report: TypeAlias = Callable[[str, Mapping[str, Json]], None]
"""Takes the kind and the data of an event."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One execution, as the thread that executes and the one that supervises it share it.

    Attributes:
        stopping: set when no further cell may start.
        kernel: the kernel's process; its exit status stays readable after its death.
        ready: the kernel has answered.
        failure: index of the cell that raised, and what it raised.
    """

    order: Order
    output: Path
    report: Report
    stopping: threading.Event = field(default_factory=threading.Event)
    manager: Manager | None = None
    client: Client | None = None
    kernel: subprocess.Popen[bytes] | None = None
    ready: bool = False
    failure: tuple[int, CellExecutionError] | None = None

    def interrupt(self) -> None:
        """Begin to stop: no further cell, an interrupt for this one, a short farewell."""
        self.stopping.set()
        if self.client is not None:
            self.client.shutdown_kernel = "immediate"
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """The kernel and whatever it has in its process group."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.kernel is not None and self.kernel.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.kernel.pid, number)


class Manager(NotebookExecutionManager):  # type: ignore[misc]  # papermill has no types
    """Papermill's record of an execution: truthful statuses, whole files, and events."""

    nb: NotebookNode

    def __init__(self, nb: NotebookNode, attempt: Attempt) -> None:
        super().__init__(nb, progress_bar=False, autosave_cell_every=AUTOSAVE_SECONDS)
        self.attempt = attempt
        self.numbers = _numbers(nb)
        self.current: int | None = None
        self.done = 0

    def place(self, index: int | None) -> str:
        """A cell as people count them: ``cell 3``."""
        if index is None:
            return ""
        number = self.numbers.get(index)
        return "the injected parameters" if number is None else f"cell {number}"

    def save(self, **_: object) -> None:
        draft = self.attempt.output.with_name(f".{self.attempt.output.name}.part")
        text: str = nbformat.writes(self.nb)  # type: ignore[no-untyped-call]
        draft.write_text(text, encoding="utf-8")
        draft.replace(self.attempt.output)
        self.last_save_time = self.now()

    def notebook_start(self, **_: object) -> None:
        order = self.attempt.order
        # Papermill puts its arguments here; a reader gains nothing from the server's paths.
        self.nb.metadata.papermill["input_path"] = order.notebook_name
        self.nb.metadata.papermill["output_path"] = order.output_name
        self.nb.metadata["carrel"] = {
            "request": order.request_id,
            "epoch": order.epoch,
            "outcome": "running",
            "message": "",
            "cells": len(self.numbers),
            "done": 0,
            "started_at": _now(),
            "ended_at": None,
            "devices": list(order.devices),
            "device_ids": list(order.device_ids),
        }
        super().notebook_start()
        self.attempt.report("cells", {"cells": len(self.numbers)})

    def cell_start(self, cell: NotebookNode, cell_index: int, **_: object) -> None:
        self.current = cell_index
        super().cell_start(cell, cell_index)
        number = self.numbers.get(cell_index)
        if number is not None:
            self.attempt.report("cell_started", {"index": cell_index, "number": number})

    def cell_exception(
        self, cell: NotebookNode, cell_index: int, exception: CellExecutionError, **_: object
    ) -> None:
        self.attempt.failure = (cell_index, exception)
        super().cell_exception(cell, cell_index)

    def cell_complete(self, cell: NotebookNode, cell_index: int, **_: object) -> None:
        number = self.numbers.get(cell_index)
        completed = cell.metadata.papermill["status"] != self.FAILED
        if completed and number is not None:
            self.done += 1
            self.nb.metadata.carrel["done"] = self.done
        super().cell_complete(cell, cell_index)
        if completed:
            self.current = None
        if completed and number is not None:
            seconds = float(cell.metadata.papermill["duration"] or 0.0)
            self.attempt.report(
                "cell_finished", {"index": cell_index, "number": number, "seconds": seconds}
            )

    def pass_over(self, cell: NotebookNode) -> None:
        """Text needs no execution, and no save of its own."""
        cell.metadata.papermill["status"] = self.COMPLETED
        cell.metadata.papermill["exception"] = False

    def conclude(self, ending: Ending) -> None:
        """Write the end into the notebook: what ran, what did not, and why it stopped."""
        # Papermill marks an error with cells of its own; they would shift every index.
        remove_error_markers(self.nb)
        self.end_time = self.now()
        good = ending.code is CauseCode.SUCCEEDED
        papermill = self.nb.metadata.papermill
        papermill["end_time"] = self.end_time.isoformat()
        papermill["duration"] = (self.end_time - self.start_time).total_seconds()
        papermill["exception"] = None if good else True
        for cell in self.nb.cells:
            if cell.metadata.papermill["status"] == self.RUNNING:
                cell.metadata.papermill["status"] = self.FAILED
                cell.metadata.papermill["exception"] = True
        self.nb.metadata.carrel.update(
            {"outcome": str(ending.code), "message": ending.message, "ended_at": _now()}
        )
        self.save()


class Client(PapermillNotebookClient):  # type: ignore[misc]  # papermill has no types
    """Talks to the kernel; prints what the notebook prints."""

    nb_man: Manager

    def create_kernel_manager(self) -> object:
        manager = super().create_kernel_manager()
        # Others have accounts on this machine too, and could listen to an open connection.
        if manager.has_trait("transport_encryption") and zmq.has("curve"):
            manager.transport_encryption = "auto"
        return manager

    def start_new_kernel(self, **kwargs: object) -> None:
        super().start_new_kernel(**kwargs)
        # Only a kernel that runs as a process of this machine has one.
        process = getattr(self.km.provisioner, "process", None)
        self.nb_man.attempt.kernel = cast("subprocess.Popen[bytes] | None", process)

    def papermill_execute_cells(self) -> None:
        attempt = self.nb_man.attempt
        attempt.ready = True
        for index, cell in enumerate(self.nb.cells):
            if attempt.stopping.is_set():
                raise Stopped
            if cell.cell_type != "code":
                self.nb_man.pass_over(cell)
                continue
            self.nb_man.cell_start(cell, cell_index=index)
            try:
                self.execute_cell(cell, index)
            except CellExecutionError as error:
                self.nb_man.cell_exception(cell, cell_index=index, exception=error)
            # Whatever else is raised leaves the cell ``running``: ``conclude`` judges it.
            self.nb_man.cell_complete(cell, cell_index=index)
            if attempt.failure is not None:
                return

    def log_output_message(self, output: NotebookNode) -> None:
        if output.output_type == "stream":
            text = "".join(output.text)
        elif output.output_type == "error":
            text = plain("\n".join(output.traceback)) + "\n"
        else:
            text = "".join(output.get("data", {}).get("text/plain", ""))
            text += "\n" if text else ""
        sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8"))
        sys.stdout.flush()


class CarrelEngine(NBClientEngine):  # type: ignore[misc]  # papermill has no types
    """The engine that papermill finds under the name ``carrel``."""

    @classmethod
    def execute_notebook(
        cls, nb: NotebookNode, kernel_name: str, *, attempt: Attempt, **_: object
    ) -> NotebookNode:
        manager = Manager(nb, attempt)
        manager.notebook_start()
        attempt.manager = manager
        attempt.client = Client(
            manager,
            kernel_name=kernel_name,
            startup_timeout=START_TIMEOUT_SECONDS,
            timeout=None,
            log=logger,
            stdout_file=sys.stdout,
        )
        attempt.client.execute()
        return manager.nb


def register() -> None:
    """Make the engine known to papermill."""
    papermill_engines.register(ENGINE, CarrelEngine)


def _numbers(nb: NotebookNode) -> dict[int, int]:
    """Index in the output notebook → number among the code cells as they were submitted.

    The cell with the injected parameters is papermill's own: it has no number.
    """
    mine = [
        index
        for index, cell in enumerate(nb.cells)
        if cell.cell_type == "code" and INJECTED_TAG not in cell.metadata.get("tags", [])
    ]
    return {index: number for number, index in enumerate(mine, start=1)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
