"""Papermill's record of an execution, filled from the output notebook of a job."""

from __future__ import annotations

import sys
from typing import Any

import nbformat
from papermill.engines import NotebookExecutionManager
from papermill.log import logger


class JobNotebook(NotebookExecutionManager):  # type: ignore[misc]  # papermill has no types
    """The notebook that papermill saves while the job runs."""

    nb: nbformat.NotebookNode

    def __init__(self, nb: nbformat.NotebookNode, **more: Any) -> None:
        self.stdout_file = more.pop("stdout_file", None)
        self.stderr_file = more.pop("stderr_file", None)
        super().__init__(nb, **more)
        self.succeeded = False
        self._started: set[int] = set()
        self._ended: set[int] = set()

    def merge(self, executed: nbformat.NotebookNode) -> None:
        """Copy what the job has executed so far, and report the cells that started or ended."""
        for index, (mine, theirs) in enumerate(zip(self.nb.cells, executed.cells, strict=True)):
            found = theirs.metadata.get("papermill", {})
            status = found.get("status", self.PENDING)
            if status == self.PENDING:
                continue
            if index not in self._started:
                self._started.add(index)
                self.cell_start(mine, cell_index=index)
            if mine.cell_type == "code":
                mine.outputs, mine.execution_count = theirs.outputs, theirs.execution_count
            if status != self.RUNNING and index not in self._ended:
                self._ended.add(index)
                self._print(mine)
                if found.get("exception"):
                    self.cell_exception(mine, cell_index=index)
                self.cell_complete(mine, cell_index=index)
            mine.metadata.papermill = found
        self.autosave_cell()

    def notebook_complete(self, **more: Any) -> None:
        """Save the end; unlike papermill's own record, cells that never ran stay pending."""
        pending = [cell for cell in self.nb.cells if self._is_pending(cell) and not self.succeeded]
        super().notebook_complete(**more)
        for cell in pending:
            cell.metadata.papermill["status"] = self.PENDING
        if pending:
            self.save()

    def say(self, text: str) -> None:
        """Print a line on stderr, above the progress bar."""
        if self.pbar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self.pbar.write(text, file=sys.stderr)

    def waits(self, text: str) -> None:
        """Show the reason of the wait: beside the bar of a terminal, else as a line."""
        if self.pbar is not None and sys.stderr.isatty():
            self.pbar.set_postfix_str(text)
        elif text:
            self.say(text)

    def _is_pending(self, cell: nbformat.NotebookNode) -> bool:
        return bool(cell.metadata.papermill["status"] == self.PENDING)

    def _print(self, cell: nbformat.NotebookNode) -> None:
        """Print the output of a cell where papermill's own engine does."""
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                file = self.stdout_file if output.name == "stdout" else self.stderr_file
                if file:
                    file.write(output.text)
                    file.flush()
            if self.log_output:
                logger.info(output.get("text") or output.get("data", {}).get("text/plain", ""))
