"""Images and HTML of the executed notebooks that were shown last.

A page with many images asks for each by itself. A notebook is not trusted and can be large: it is
parsed once, one at a time, without the upgrade and repair that only old formats need.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from ...attempts.notebook_format import INJECTED_TAG
from ...errors import InvalidInput, TooLarge
from ...records.json_value import parse_json
from ...schemas import MAX_NOTEBOOK_BYTES
from .cell_output import joined
from .markdown import IMAGES

_KEPT: Final = (*IMAGES, "image/svg+xml", "text/html")
_REMEMBERED: Final = 4
"""Notebooks: a comparison shows two."""
NotebookOutputs = tuple[tuple[JsonValue, ...], ...]
"""By cell and output, each with its images and HTML as text alone."""


class NotebookOutputCache:
    """The outputs of the last notebooks, by request and epoch of its attempt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parsing = threading.Lock()
        self._found: OrderedDict[tuple[str, int], NotebookOutputs] = OrderedDict()

    def outputs(
        self, request_id: str, epoch: int, read: Callable[[], tuple[str, bytes]]
    ) -> NotebookOutputs:
        """Return the outputs of an attempt that has ended.

        Args:
            read: returns name and content of its notebook; called if they are not known.

        Raises:
            InvalidInput: it is not a notebook.
            TooLarge: it has more than 32 MiB.
        """
        key = request_id, epoch
        known = self._known(key)
        if known is not None:
            return known
        with self._parsing:
            # Meanwhile, another call may have parsed it.
            known = self._known(key)
            if known is None:
                known = displayed_outputs(*read())
                with self._lock:
                    self._found[key] = known
                    if len(self._found) > _REMEMBERED:
                        self._found.popitem(last=False)
        return known

    def _known(self, key: tuple[str, int]) -> NotebookOutputs | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)


def displayed_outputs(name: str, content: bytes) -> NotebookOutputs:
    """Return the outputs of a notebook of format 4, as ``NotebookOutputs``.

    The cells are all but papermill's own.

    Raises:
        InvalidInput: the content is not a notebook.
        TooLarge: it has more than 32 MiB.
    """
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise TooLarge(
            f"{name} has {len(content) / 2**20:.0f} MiB, which is too large to be shown.",
            accepted=f"Notebooks of at most {MAX_NOTEBOOK_BYTES >> 20} MiB.",
        )
    try:
        notebook = parse_json(content)
    except ValueError as error:
        raise InvalidInput(f"{name} cannot be read as a notebook: {error}.") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise InvalidInput(f"{name} is not a notebook.", accepted="A Jupyter notebook (.ipynb).")
    known = (cell if isinstance(cell, dict) else {} for cell in cells)
    return tuple(_outputs(cell) for cell in known if not _is_injected(cell))


def _is_injected(cell: Mapping[str, object]) -> bool:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return isinstance(tags, list) and INJECTED_TAG in tags


def _outputs(cell: Mapping[str, object]) -> tuple[JsonValue, ...]:
    outputs = cell.get("outputs")
    return tuple(_displayed(output) for output in outputs) if isinstance(outputs, list) else ()


def _displayed(output: object) -> JsonValue:
    data = output.get("data") if isinstance(output, dict) else None
    if not isinstance(data, dict):
        return None
    return {"data": {mime: joined(data[mime]) for mime in _KEPT if mime in data}}
