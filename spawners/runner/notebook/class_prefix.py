"""Compute the prefix of a class in one job, and begin other jobs with it.

The order says whether a job computes a prefix; the service has put the files of one into the folder
of an attempt that may begin with it. Whatever does not fit, all cells run, and the log says why.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import nbformat
from jupyter_core.utils import run_sync
from nbformat import NotebookNode, ValidationError

from ....courses.prefixes import kernel_side, process_comparison, shared_objects
from ....courses.prefixes.attempt_files import (
    NOTEBOOK,
    PrefixHeader,
    read_header,
    withdraw_offer,
)
from ....courses.prefixes.process_state import COURSE_DATA
from ....hub.errors import InvalidInput
from ....hub.messages.units import count

if TYPE_CHECKING:
    from .engine import NotebookClient

WIDGET: Final = "application/vnd.jupyter.widget-view+json"


class WithoutPrefix:
    """Runs all cells, and saves nothing for other jobs.

    Attributes:
        first: index of the cell before which ``restore`` is called; -1 for none.
    """

    first = -1

    def restore(self) -> int:
        """Restore variables; return the index of the next cell to execute."""
        return 0

    def before(self, index: int) -> None:
        """Prepare for a code cell that runs next."""

    def after(self, index: int, cell: NotebookNode) -> None:
        """Act on a code cell that succeeded."""


def of(client: NotebookClient) -> WithoutPrefix:
    """Return what the order of a job, and the files beside it, say about a prefix."""
    attempt = client.nb_man.attempt
    if not getattr(client.km, "ipykernel", False):
        return WithoutPrefix()
    if attempt.order.job.computes_prefix:
        return PrefixComputation(client)
    header = read_header(attempt.folder)
    return WithoutPrefix() if header is None else PrefixRestoration(client, header)


class _InKernel(WithoutPrefix):
    def __init__(self, client: NotebookClient, *, data: bool) -> None:
        self._client, self._attempt = client, client.nb_man.attempt
        folder = os.environ.get(COURSE_DATA, "") if data else ""
        client.install(process_comparison)
        client.install(shared_objects)
        client.install(kernel_side, str(self._attempt.folder), folder)

    def _call(self, call: str) -> str:
        """Call a method in the kernel; return what it says, or why it could not."""
        answer = run_sync(self._client.evaluate)(f"get_ipython().kernel.carrel_prefix.{call}")
        if answer.get("status") != "ok":
            return str(answer.get("evalue", "the kernel cannot do it"))
        return self._client.value_of(answer)


class PrefixComputation(_InKernel):
    """Saves the variables after the cells that other jobs do not have to run."""

    def __init__(self, client: NotebookClient) -> None:
        # The analysis of cells takes a quarter of the imports of a runner, and few jobs need it.
        from ....courses.prefixes.prefix_cells import prefix_plan  # noqa: PLC0415

        order = client.nb_man.attempt.order
        try:
            text = Path(order.input_path).read_text(encoding="utf-8")
            plan = prefix_plan(order.job.notebook_name, text)
        except (OSError, InvalidInput) as error:
            client.nb_man.attempt.log.write(f"carrel: no prefix is saved: {error}\n")
            plan = prefix_plan("", '{"cells": []}')
        super().__init__(client, data=plan.data)
        self._runs = {cell.index: cell.runs for cell in plan.cells}
        self._problem = self._call("begin()")
        if self._problem:
            self._attempt.log.write(f"carrel: no prefix is saved: {self._problem}\n")

    def before(self, index: int) -> None:
        if not self._problem and index in self._runs:
            self._call("before()")

    def after(self, index: int, cell: NotebookNode) -> None:
        if self._problem or index not in self._runs:
            return
        runs = self._runs[index]
        if any(WIDGET in output.get("data", {}) for output in cell.outputs):
            runs = runs or "it shows a widget"
        seconds = float(cell.metadata.papermill.get("duration") or 0.0)
        problem = self._call(f"after({index}, {seconds}, {runs!r})")
        if problem:
            place = self._client.nb_man.place(index)
            self._attempt.log.write(f"carrel: {place} runs in each job: {problem}\n")


class PrefixRestoration(_InKernel):
    """Takes over the cells that the course has run."""

    def __init__(self, client: NotebookClient, header: PrefixHeader) -> None:
        super().__init__(client, data=bool(header.data))
        self._header = header
        self.first = header.first

    def restore(self) -> int:
        attempt, manager, header = self._attempt, self._client.nb_man, self._header
        found = _executed(attempt.folder)
        problem = self._problem(found) or self._call("restore()")
        withdraw_offer(attempt.folder)
        if problem or found is None:
            attempt.log.write(f"carrel: the prefix of the course is not used: {problem}\n")
            return 0
        origin = str(found.metadata.get("carrel", {}).get("request", ""))
        numbers = [index for index in range(header.first, header.cells) if index in manager.numbers]
        for index in range(header.first, header.cells):
            cell = manager.nb.cells[index]
            if cell.cell_type != "code":
                manager.skip_text(cell, index)
            else:
                manager.cell_resumed(cell, index, found.cells[index], origin)
        attempt.log.write(
            f"carrel: {count(len(numbers), 'cell')} from {manager.place(numbers[0])} on come from "
            f"the prefix of the course ({origin}), which took {header.seconds:.1f} s\n"
        )
        attempt.report("prefix", {"cells": len(numbers), "computed_by": origin})
        manager.settle()
        return header.cells

    def _problem(self, found: NotebookNode | None) -> str:
        from ....courses.prefixes.prefix_cells import cells_digest  # noqa: PLC0415  # see above

        cells = self._client.nb.cells
        last = self._header.cells
        if found is None or len(found.cells) < last:
            return "its notebook cannot be read"
        if len(cells) < last or cells_digest(cells[:last]) != cells_digest(found.cells[:last]):
            return "the notebook does not begin with the cells of the release"
        return ""


def _executed(folder: Path) -> NotebookNode | None:
    try:
        found: NotebookNode = nbformat.read(folder / NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, ValidationError, AttributeError):
        return None
    return found
