"""From an order to an ending: load the notebook, find its kernel, run it, judge the result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpecManager
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from . import ending
from .ending import Ending, StartFailed
from .engine import ENGINE, Attempt, Manager, register
from .order import Order

DEFAULT_KERNEL = "python3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    name: str
    language: str


def execute(attempt: Attempt) -> None:
    """Run the notebook to its end; every other end is raised."""
    order = attempt.order
    notebook = load(order)
    kernel = choose_kernel(order, notebook)
    register()
    # A notebook in memory and no output path: papermill would format paths with parameters.
    papermill.execute_notebook(
        notebook,
        None,
        parameters=dict(order.parameters),
        engine_name=ENGINE,
        kernel_name=kernel.name,
        language=kernel.language,
        progress_bar=False,
        cwd=order.home,
        attempt=attempt,
    )


def load(order: Order) -> NotebookNode:
    """Raises StartFailed where the file is no notebook that this version reads."""
    try:
        text = Path(order.input_path).read_text(encoding="utf-8")
        notebook: NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(notebook)
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError) as error:
        first = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise StartFailed(f"{order.notebook_name} cannot be read: {first[0]}") from error
    return notebook


def choose_kernel(order: Order, notebook: NotebookNode) -> Kernel:
    """The ordered kernel, else the notebook's own, else Python.

    Raises:
        StartFailed: it is not installed; lists those that are.
    """
    specs = KernelSpecManager()
    installed = sorted(specs.find_kernel_specs())
    name = order.kernel or notebook.metadata.get("kernelspec", {}).get("name", DEFAULT_KERNEL)
    if name not in installed:
        raise StartFailed(
            f'the kernel "{name}" is not installed; installed are: {", ".join(installed) or "none"}'
        )
    return Kernel(name=name, language=specs.get_kernel_spec(name).language)


def judge(attempt: Attempt, error: BaseException | None) -> Ending:
    """Why it ended, from what was raised and from what was seen of the kernel."""
    manager = attempt.manager
    if manager is not None and attempt.failure is not None:
        return _of_cell(manager, *attempt.failure)
    # Papermill also complains about errors that a tag of the cell expects.
    if manager is not None and (error is None or isinstance(error, PapermillExecutionError)):
        return ending.succeeded(manager.done)
    status = None if attempt.kernel is None else attempt.kernel.poll()
    match error:
        case StartFailed():
            return ending.start_failed(str(error))
        case DeadKernelError() if manager is not None:
            return ending.kernel_died(manager.place(manager.current), status)
        case RuntimeError() if manager is not None and not attempt.ready:
            seen = "" if status is None else f" ({ending.exit_words(status)})"
            return ending.start_failed(f"the kernel did not start{seen}: {error}")
    return ending.runner_failed(error)


def _of_cell(manager: Manager, index: int, raised: CellExecutionError) -> Ending:
    if raised.ename == "SystemExit" and raised.evalue in {"", "0", "None"}:
        return ending.ended_itself(manager.place(index), len(manager.numbers))
    return ending.cell_error(manager.place(index), raised.ename, raised.evalue, raised.traceback)
