"""Run a marimo notebook: marimo exports it with outputs, and the export is the output of the job.

marimo belongs to the environment of the job's kernel, not to the runner's. What it does with the
cells is known only when it has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import nbformat
from jupyter_client.kernelspec import KernelSpec
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from ....hub.attempts.notebook_format import read_notebook
from ....hub.errors import InvalidInput
from ....hub.records.json_value import Json
from ..attempt.command import run_process
from ..attempt.outcome_messages import StartFailed
from ..attempt.output_masker import Masker
from ..kernels.provisioner import split_command
from .engine import NotebookManager, text_for_log
from .state import NotebookState

_FOLDER: Final = "marimo"
_NEEDS: Final = ("marimo", "nbformat")
_FIND: Final = (
    "import importlib.util, sys\n"
    "print(*(name for name in sys.argv[1:] if not importlib.util.find_spec(name)))"
)
_FIND_SECONDS: Final = 60
MARIMO_EXPORT: Final = ("marimo", "export")


class ExportFailed(Exception):
    """marimo ended without a notebook, or reported an error that is in no cell."""


def run_marimo(attempt: NotebookState, source: str, spec: KernelSpec) -> None:
    """Run a marimo notebook in the working folder, with the interpreter of a kernel.

    Raises:
        StartFailed: the kernel is not a Python kernel, or has no marimo.
        ExportFailed: marimo failed without an error in a cell.
    """
    job = attempt.order.job
    interpreter = _interpreter(spec)
    if missing := _missing(interpreter, spec.env):
        raise StartFailed(
            f"{job.notebook_name} is a marimo notebook, but the environment of the kernel "
            f'"{spec.display_name}" has no {" and no ".join(missing)}: install it there '
            f"(pip install {' '.join(missing)}), or choose another kernel or image"
        )
    folder = attempt.folder / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    script = folder / Path(job.notebook_name).with_suffix(".py")
    script.write_text(source, encoding="utf-8")
    result = folder / job.notebook_name
    command = [
        *interpreter,
        *("-m", "marimo", "export", "ipynb", str(script)),
        *("--include-outputs", "--force", "--output", str(result), "--"),
        *_arguments(job.parameters),
    ]
    status = run_process(attempt, command, attempt.log.write, spec.env)
    try:
        node = read_notebook(result.name, result.read_bytes()).node
    except (OSError, InvalidInput) as error:
        raise ExportFailed(str(error)) from error
    _record(attempt, node)
    if status and attempt.failure is None:
        raise ExportFailed(f"exit status {status}")


def _interpreter(spec: KernelSpec) -> Sequence[str]:
    words = split_command(spec.argv)
    if words is None:
        raise StartFailed(f'a marimo notebook needs a Python kernel, not "{spec.display_name}"')
    # As jupyter_client does: its own interpreter, whatever is first in PATH.
    first = sys.executable if words[0][0] in {"python", "python3"} else words[0][0]
    return [first, *words[0][1:]]


def _missing(interpreter: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    try:
        found = subprocess.run(
            [*interpreter, "-c", _FIND, *_NEEDS],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FIND_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StartFailed(f"the interpreter of the kernel does not run: {error}") from error
    return found.stdout.split()


def _arguments(parameters: Mapping[str, Json]) -> list[str]:
    """Return the parameters as options, which ``mo.cli_args()`` reads."""
    arguments = []
    for name, value in parameters.items():
        arguments += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    return arguments


def _record(attempt: NotebookState, node: NotebookNode) -> None:
    """Store and report the cells of the export; the error that counts is that of the first one."""
    outputs = {at: cell.outputs for at, cell in enumerate(node.cells) if "outputs" in cell}
    node.metadata["papermill"] = nbformat.from_dict({})  # type: ignore[no-untyped-call]
    manager = attempt.manager = NotebookManager(node, attempt)
    manager.notebook_start()
    for at, cell in enumerate(node.cells):
        if at not in outputs:
            manager.skip_text(cell, at)
    # marimo executes all cells that do not depend on a failed one.
    for at in sorted(outputs, key=lambda at: _error(outputs[at]) is not None):
        _record_cell(manager, at, outputs[at])
    manager.settle()


def _record_cell(manager: NotebookManager, index: int, outputs: Sequence[NotebookNode]) -> None:
    attempt, cell = manager.attempt, manager.nb.cells[index]
    outputs = [masked_output(output, attempt.masker) for output in outputs]
    error = _error(outputs)
    first = attempt.failure is None
    if first:
        manager.cell_start(cell, cell_index=index)
    for output in outputs:
        if output.output_type == "stream":
            text = "".join(output.text)
            manager.outputs.print(cell.outputs, output.name, text)
            attempt.reporter.print(output.name, text)
            attempt.log.write(text)
            continue
        if manager.outputs.accept(cell.outputs, output):
            cell.outputs.append(output)
        attempt.reporter.output(output)
        attempt.log.write(text_for_log(output))
    if not first:
        cell.metadata.papermill.update(status=manager.FAILED, exception=True)
        return
    if error is not None:
        raised = CellExecutionError("\n".join(error.traceback), error.ename, error.evalue)
        manager.cell_exception(cell, cell_index=index, exception=raised)
    manager.cell_complete(cell, cell_index=index)


def masked_output(output: NotebookNode, masker: Masker) -> NotebookNode:
    found: NotebookNode = nbformat.from_dict(masker.json(output))  # type: ignore[no-untyped-call]
    return found


def _error(outputs: Sequence[NotebookNode]) -> NotebookNode | None:
    return next((output for output in outputs if output.output_type == "error"), None)
