"""Run a notebook attempt: load the notebook, choose its kernel, execute, judge the outcome."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import papermill
from jupyter_client.kernelspec import KernelSpecManager
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from ....hub.attempts import snapshots
from ....hub.attempts.notebook_format import is_marimo, read_notebook, resolve_kernel
from ....hub.attempts.notebook_repair import DEFAULT_KERNEL
from ....hub.attempts.spec import AttemptSpec
from ....hub.errors import InvalidInput
from ....hub.records.requests import CauseCode
from ..attempt import outcome_messages as outcome
from ..attempt.outcome_messages import AttemptOutcome, StartFailed
from ..attempt.working_folder import working_folder
from .engine import ENGINE, Halted, NotebookManager, register
from .marimo_export import MARIMO_EXPORT, ExportFailed, run_marimo
from .state import NotebookState

_TAIL_CHARACTERS: Final = 8000
_NO_INPUT = "StdinNotImplementedError"
"""Name of the error that a Python kernel raises for ``input()`` without a frontend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenKernel:
    name: str
    language: str


class NotebookAttempt(NotebookState):
    """Runs the notebook of an order."""

    def execute(self) -> None:
        order = self.order
        cwd = working_folder(order, self.folder)
        self.observe(cwd)
        notebook = load(order)
        kernel = choose_kernel(order, notebook)
        if is_marimo(notebook):
            os.chdir(cwd)
            spec = KernelSpecManager().get_kernel_spec(kernel.name)
            return run_marimo(self, notebook.cells[0].source, spec)
        register()
        # The notebook is in memory, without an output path, because papermill would format paths
        # with the parameters.
        papermill.execute_notebook(
            notebook,
            None,
            parameters=dict(order.job.parameters),
            engine_name=ENGINE,
            kernel_name=kernel.name,
            language=kernel.language,
            progress_bar=False,
            cwd=str(cwd),
            attempt=self,
        )

    def judge(self, error: BaseException | None) -> AttemptOutcome:
        manager = self.manager
        if self.memory_used and not self.cells_ended:
            place = "" if manager is None else manager.place(manager.current)
            return outcome.out_of_memory(place, self.memory_used, self.order.job.memory_bytes)
        if manager is not None and self.failure is not None:
            return self._cell_failed(manager, *self.failure)
        if isinstance(error, ExportFailed):
            return self._export_failed()
        # Papermill also raises for errors that a tag of the cell expects.
        if manager is not None and (
            self.cells_ended or error is None or isinstance(error, PapermillExecutionError)
        ):
            return outcome.succeeded(manager.done)
        # A failure after the last cell, such as the return to a deleted home, does not count.
        if manager is not None and manager.numbers and manager.done == len(manager.numbers):
            return outcome.succeeded(manager.done)
        status = None if self.process is None else self.process.poll()
        match error:
            case StartFailed():
                return outcome.invalid_job(str(error))
            case Halted() if manager is not None:
                place = f"cell {manager.done}" if manager.done else ""
                return outcome.halted(place, len(manager.numbers))
            case DeadKernelError() if manager is not None:
                place = manager.place(manager.current)
                if self.killed_by_system:
                    return outcome.out_of_system_memory(place, *self.counter.peak_and_limit())
                return outcome.kernel_died(place, status)
            case RuntimeError() if manager is not None and not self.ready:
                exit_text = "" if status is None else f" ({outcome.describe_exit(status)})"
                return outcome.kernel_not_started(exit_text, error)
        return outcome.runner_failed(error)

    def _cell_failed(
        self, manager: NotebookManager, index: int, raised: CellExecutionError
    ) -> AttemptOutcome:
        place = manager.place(index)
        if raised.ename == "SystemExit" and raised.evalue in {"", "0", "None"}:
            return outcome.ended_itself(place, len(manager.numbers))
        if raised.ename == _NO_INPUT:
            return outcome.asked_for_input(place)
        found = outcome.cell_error(place, raised.ename, raised.evalue, raised.traceback)
        if found.memory is None or found.memory.device:
            return found
        return replace(found, memory=replace(found.memory, used=self.used_at_failure))

    def _export_failed(self) -> AttemptOutcome:
        if self.killed_by_system:
            return outcome.out_of_system_memory("", *self.counter.peak_and_limit())
        status = None if self.process is None else self.process.poll()
        return outcome.command_failed(MARIMO_EXPORT, status or 0, self.log.tail(_TAIL_CHARACTERS))

    @property
    def failed(self) -> bool:
        return self.failure is not None

    def conclude(self, outcome: AttemptOutcome) -> None:
        if self.manager is not None:
            self.manager.conclude(outcome)

    def finish(self, outcome: AttemptOutcome) -> None:
        if self.client is not None:
            self.client.await_raw_output()
        if outcome.code is CauseCode.SUCCEEDED:
            snapshots.delete(self.folder)


def load(order: AttemptSpec) -> NotebookNode:
    """Return the notebook.

    Raises:
        StartFailed: the file is not a readable notebook.
    """
    name = order.job.notebook_name
    try:
        return read_notebook(name, Path(order.input_path).read_bytes()).node
    except OSError as error:
        raise StartFailed(f"{name} cannot be read: {error}") from error
    except InvalidInput as error:
        raise StartFailed(error.message) from error


def choose_kernel(order: AttemptSpec, notebook: NotebookNode) -> ChosenKernel:
    """Return the kernel of the order, else that of the notebook, else Python.

    Raises:
        StartFailed: the kernel is not installed; the message lists the installed ones.
    """
    specs = KernelSpecManager()
    installed = sorted(specs.find_kernel_specs())
    named = order.job.kernel or notebook.metadata.get("kernelspec", {}).get("name", DEFAULT_KERNEL)
    name = resolve_kernel(named, installed)
    if name is None:
        known = ", ".join(installed) or "none"
        raise StartFailed(f'the kernel "{named}" is not installed; installed are: {known}')
    return ChosenKernel(name=name, language=specs.get_kernel_spec(name).language)
