"""Make small notebooks, and read executed ones."""

# mypy: disable-error-code="no-untyped-call"
# (nbformat has no types)

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode

PYTHON = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook(*sources: str, parameters: str = "", kernel: dict[str, str] = PYTHON) -> NotebookNode:
    """Return a notebook with a title, optional ``parameters``, and one code cell per source."""
    cells = [nbformat.v4.new_markdown_cell("# A title")]
    if parameters:
        tagged = {"tags": ["parameters"]}
        cells.append(nbformat.v4.new_code_cell(parameters, metadata=tagged))
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    made: NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    return made


def read(path: Path) -> NotebookNode:
    found: NotebookNode = nbformat.read(path, as_version=4)
    return found


def text_of(made: NotebookNode) -> str:
    text: str = nbformat.writes(made)
    return text


def statuses(executed: NotebookNode) -> list[str]:
    """Return Papermill's status of every code cell."""
    return [cell.metadata.papermill.status for cell in executed.cells if "outputs" in cell]


def printed(executed: NotebookNode) -> str:
    return "".join(
        output.text
        for cell in executed.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    )
