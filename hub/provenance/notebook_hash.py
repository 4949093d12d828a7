"""Hashes of notebooks that do not depend on how the file was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .canonical_json import digest

METADATA = "carrel"
RECEIPT = "receipt"
"""The receipt of an executed notebook is in its metadata, as ``carrel.receipt``."""
INJECTED = "injected-parameters"
"""The tag of the cell that papermill adds."""


def content_hash(notebook: dict[str, Any]) -> str:
    """Return the hash of all of a notebook but its receipt, in hexadecimal digits."""
    return digest(without_receipt(notebook))


def source_hash(notebook: dict[str, Any]) -> str:
    """Return the hash of types and sources of the cells, without added parameters and outputs.

    It is the same for a notebook and the executed one.
    """
    return digest([[kind, source] for kind, source, _ in cells(notebook)])


def cells(notebook: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield type, source and cell of all cells but added parameters."""
    found = notebook.get("cells")
    for cell in found if isinstance(found, list) else ():
        if not isinstance(cell, dict):
            continue
        metadata = cell.get("metadata")
        tags = metadata.get("tags") if isinstance(metadata, dict) else None
        if isinstance(tags, list) and INJECTED in tags:
            continue
        source = cell.get("source", "")
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        yield str(cell.get("cell_type")), text, cell


def with_receipt(notebook: dict[str, Any], receipt: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with a receipt in its metadata."""
    metadata = _dict(notebook.get("metadata"))
    own = _dict(metadata.get(METADATA)) | {RECEIPT: receipt}
    return notebook | {"metadata": metadata | {METADATA: own}}


def without_receipt(notebook: dict[str, Any]) -> dict[str, Any]:
    metadata = _dict(notebook.get("metadata"))
    if METADATA not in metadata:
        return notebook
    own = {name: value for name, value in _dict(metadata[METADATA]).items() if name != RECEIPT}
    rest = {name: value for name, value in metadata.items() if name != METADATA}
    return notebook | {"metadata": rest | ({METADATA: own} if own else {})}


def receipt_of(notebook: dict[str, Any]) -> dict[str, Any] | None:
    """Return the receipt in the metadata of a notebook."""
    found = _dict(_dict(notebook.get("metadata")).get(METADATA)).get(RECEIPT)
    return found if isinstance(found, dict) else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
