"""The copy of a notebook that is published: its source, without anything that a run has added."""

from __future__ import annotations

from typing import Final

from ..attempts.notebook_format import notebook_text, read_notebook
from ..errors import TooLarge

MAX_NOTEBOOK_BYTES: Final = 8 << 20
MAX_OUTPUT_BYTES: Final = 32 << 20
_OF_A_RUN = ("execution", "papermill", "ExecuteTime", "carrel", "collapsed", "scrolled")
"""Metadata of cells that an execution writes."""
_OF_THE_NOTEBOOK = ("papermill", "widgets", "carrel")
"""Metadata of notebooks that an execution writes; ``widgets`` are the values of all widgets."""


def source_only(name: str, content: str) -> bytes:
    """Return the notebook without outputs, and without metadata of an execution.

    Attachments of Markdown cells are part of the source.

    Raises:
        InvalidInput: it is not a notebook.
        TooLarge: it has more than ``MAX_NOTEBOOK_BYTES`` without its outputs.
    """
    node = read_notebook(name, content).node
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        for key in _OF_A_RUN:
            cell.metadata.pop(key, None)
    for key in _OF_THE_NOTEBOOK:
        node.metadata.pop(key, None)
    copy = notebook_text(node).encode()
    if len(copy) > MAX_NOTEBOOK_BYTES:
        raise TooLarge(
            f"{name} has {len(copy) / 2**20:.0f} MiB without its outputs.",
            accepted=f"At most {MAX_NOTEBOOK_BYTES >> 20} MiB: remove attached images, and read "
            "data from a file.",
            field="notebook",
        )
    return copy


def check_output(name: str, content: bytes) -> bytes:
    """Return an output that may be published. Raises TooLarge."""
    if len(content) > MAX_OUTPUT_BYTES:
        raise TooLarge(
            f"{name} has {len(content) / 2**20:.0f} MiB.",
            accepted=f"An output of at most {MAX_OUTPUT_BYTES >> 20} MiB: publish without outputs.",
            field="outputs",
        )
    return content
