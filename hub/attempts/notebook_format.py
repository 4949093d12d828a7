"""Read a notebook as valid format 4.5: upgrade it, repair it, or refuse it.

Admission, the runner and the grading of submissions all use this module, so that they accept the
same files. Many programs write notebooks that violate the schema, but that Papermill executes: they
are repaired, with a sentence for each kind of repair.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import nbformat
from nbformat import NotebookNode, ValidationError

from ..errors import InvalidInput
from ..records.json_value import parse_json
from .notebook_repair import DEFAULT_KERNEL, FORMAT, MALFORMED, PYTHON, NotebookRepair, Raw

INJECTED_TAG: Final = "injected-parameters"
MARIMO: Final = "carrel_marimo"
"""Metadata of a notebook whose only cell is the source of a marimo notebook, which marimo runs."""
_OLDEST: Final = 2
"""No release of IPython wrote format 1, and nbformat duplicates its cells."""
_HASH_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidNotebook:
    """A notebook of format 4.5.

    Attributes:
        repairs: a sentence for each kind of repair; empty if the file was valid.
    """

    node: NotebookNode
    repairs: tuple[str, ...] = ()


def read_notebook(name: str, content: str | bytes) -> ValidNotebook:
    """Parse a notebook of any format, and upgrade and repair it.

    Raises:
        InvalidInput: the content is not a notebook, or cannot be repaired.
    """
    raw = _parsed(name, content)
    version = raw.get("nbformat")
    cells = raw.get("cells", raw.get("worksheets"))
    if type(version) is not int or version < _OLDEST or not isinstance(cells, list):
        raise InvalidInput(f"{name} is not a notebook.", accepted="A Jupyter notebook (.ipynb).")
    if version > FORMAT:
        raise InvalidInput(
            f"{name} has notebook format {version}, which is newer than what can be executed here.",
            accepted=f"Format {FORMAT}: open it in JupyterLab and save it again.",
        )
    try:
        repair = NotebookRepair()
        valid = repair.apply(raw if version == FORMAT else repair.upgraded(raw, version))
        node = nbformat.v4.to_notebook_json(valid)  # type: ignore[no-untyped-call]
    except MALFORMED as error:
        raise InvalidInput(
            f"{name} is not a valid notebook: {_reason(error)}",
            accepted="A notebook that JupyterLab opens without a warning.",
        ) from error
    return ValidNotebook(node=cast("NotebookNode", node), repairs=tuple(repair.sentences()))


def notebook_text(node: NotebookNode) -> str:
    """Return the text of the notebook file, which can always be encoded as UTF-8."""
    text: str = nbformat.writes(node)  # type: ignore[no-untyped-call]
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only a JSON escape can represent
        text = nbformat.writes(node, ensure_ascii=True)  # type: ignore[no-untyped-call]
    return text


def is_marimo(node: NotebookNode) -> bool:
    return bool(node.metadata.get(MARIMO)) and len(node.cells) == 1


def code_cell_numbers(cells: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Map the index of each code cell to its number, from 1, as users count them.

    The cell with the injected parameters is papermill's own: it has no number.
    """
    code_cells = [
        index
        for index, cell in enumerate(cells)
        if cell.get("cell_type") == "code"
        and INJECTED_TAG not in ((cell.get("metadata") or {}).get("tags") or ())
    ]
    return {index: number for number, index in enumerate(code_cells, start=1)}


def code_cell_hashes(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a short hash of the source of each code cell, in the order of their numbers.

    By it, the time that a cell takes is known again in an edited notebook.
    """
    for index in code_cell_numbers(cells):
        yield source_hash(str(cells[index].get("source", "")))


def source_hash(source: str) -> str:
    """Return the short hash of the source of a cell."""
    return hashlib.sha256(source.encode(errors="replace")).hexdigest()[:_HASH_DIGITS]


def resolve_kernel(wanted: str, installed: Collection[str]) -> str | None:
    """Return the installed kernel that Papermill selects for a name; None if there is none.

    Jupyter ignores the case of kernel names, and ``python`` is the native kernel.
    """
    name = wanted.lower()
    if name == PYTHON:
        name = DEFAULT_KERNEL
    return next((kernel for kernel in sorted(installed) if kernel.lower() == name), None)


def _parsed(name: str, content: str | bytes) -> Raw:
    accepted = "A Jupyter notebook (.ipynb)."
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        raw = parse_json(text)
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{name} is not UTF-8.", accepted="A notebook saved as UTF-8, as JupyterLab does."
        ) from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{name} is not a notebook: it is not JSON ({error}).", accepted=accepted
        ) from error
    except ValueError as error:
        raise InvalidInput(
            f"{name} cannot be read as a notebook: {error}.", accepted=accepted
        ) from error
    if not isinstance(raw, dict):
        raise InvalidInput(f"{name} is not a notebook.", accepted=accepted)
    return raw


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(error).strip().partition("\n")[0]
    return "it does not have the form of a notebook."
