"""Read and write notebooks with nbformat; wrapped here, since nbformat has no types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import nbformat
from nbformat import NotebookNode, ValidationError

from ...hub.attempts.notebook_format import notebook_text, read_notebook
from ...hub.records.json_value import check_depth


def read(name: str, data: bytes) -> NotebookNode:
    """Read a notebook of any format as format 4.5. Raises InvalidInput."""
    return read_notebook(name, data).node


def written(node: NotebookNode) -> bytes:
    return notebook_text(node).encode()


def as_node(data: Mapping[str, object]) -> NotebookNode:
    return cast("NotebookNode", nbformat.from_dict(dict(data)))  # type: ignore[no-untyped-call]


def as_output(data: Mapping[str, object]) -> NotebookNode | None:
    """One output of a cell; None where it is not valid."""
    try:
        check_depth(data)
        node = as_node(data)
        nbformat.validate(node, ref="output", version=4)
    except (ValidationError, AttributeError, TypeError, KeyError, ValueError):
        return None
    return node
