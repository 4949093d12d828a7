"""Read and write notebooks with nbformat; wrapped here, since nbformat has no types."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import cast

import nbformat
from nbformat import NotebookNode, ValidationError

from ...hub.errors import InvalidInput
from ...hub.records.json_value import check_depth, parse_json

_WITH_IDS = 5
"""The minor version of format 4 from which cells have ids."""
_ACCEPTED = "A notebook as JupyterLab saves it."


def read(name: str, data: bytes) -> NotebookNode:
    """Read a notebook of any format as format 4.

    Raises:
        InvalidInput: it is not a notebook.
    """
    try:
        text = data.decode("utf-8-sig")
        parse_json(text)  # nbformat does not limit the depth
        loaded: object = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        _give_ids(cast("NotebookNode", loaded))
        nbformat.validate(loaded)
    except (ValueError, ValidationError) as error:
        raise InvalidInput(f"{name} cannot be read as a notebook.", accepted=_ACCEPTED) from error
    except (AttributeError, KeyError, TypeError) as error:  # JSON of another shape
        raise InvalidInput(f"{name} is not a notebook.", accepted=_ACCEPTED) from error
    return cast("NotebookNode", loaded)


def _give_ids(node: NotebookNode) -> None:
    """Give every cell an ID (format 4.5), the same each time the file is read."""
    node.nbformat_minor = max(_WITH_IDS, node.nbformat_minor)
    taken: set[str] = set()
    for cell in node.cells:
        own = cell.get("id")
        role = cell.metadata.get("nbgrader")
        named = role.get("grade_id") if isinstance(role, dict) else None
        text = str(named or f"{cell.cell_type}\n{cell.source}")
        while not isinstance(own, str) or not own or own in taken:
            own = hashlib.sha256(text.encode()).hexdigest()[:8]
            text = f"{text}+"
        cell["id"] = own
        taken.add(own)


def written(node: NotebookNode) -> bytes:
    text: str = nbformat.writes(node)  # type: ignore[no-untyped-call]
    return text.encode()


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
