"""Convert a submitted Python script into the notebook that the job runs.

A script with cells (``# %%``) is converted by Jupytext. A script without cells becomes a notebook
with one cell, so that its output is a notebook too. So does a marimo notebook, marked as one: the
runner lets marimo execute it.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any, Final

import nbformat
from nbformat import NotebookNode

from ..attempts.notebook_format import MARIMO, notebook_text
from ..attempts.notebook_repair import DEFAULT_KERNEL, PYTHON
from ..errors import InvalidInput, TooLarge
from ..schemas import SCRIPT, NotebookIn

MAX_SCRIPT_BYTES: Final = 2**20
MAX_SCRIPT_CELLS: Final = 2000
"""Jupytext needs about a second for a script at both limits."""
_OTHER_SCRIPTS: Final = frozenset(
    {".r", ".jl", ".js", ".m", ".qmd", ".rmd", ".md", ".scala", ".sh"}
)
_MOST_HEADER: Final = 1 << 13
"""Characters of a header that is read: YAML takes ten seconds for a megabyte."""
_CELL: Final = re.compile(r"^# ?%%", re.MULTILINE)
_MARIMO: Final = re.compile(r"^app\s*=\s*marimo\.App\(", re.MULTILINE)
_IMPORTS_MARIMO: Final = re.compile(r"^import marimo\b", re.MULTILINE)
_HEADER: Final = re.compile(
    r"\A(?P<before>(?:#!.*\n)?)# ---[ \t]*\n(?P<yaml>(?:#.*\n)*?)# ---[ \t]*\n"
)
_ACCEPTED: Final = "A Jupyter notebook (.ipynb), or a Python script (.py) saved as UTF-8."


def as_notebook(submitted: NotebookIn) -> NotebookIn:
    """Return a notebook as it is, and a Python script as the notebook ``NAME.ipynb``.

    Raises:
        TooLarge: the script is larger than Jupytext converts in about a second.
        InvalidInput: it is not a text, or a script in another language.
    """
    path = PurePosixPath(submitted.name)
    if path.suffix.lower() in _OTHER_SCRIPTS:
        raise InvalidInput(
            f"{submitted.name} is not a notebook or a Python script.",
            accepted=f"{_ACCEPTED} Convert it first: jupytext --to ipynb {submitted.name}",
            field="notebook",
        )
    if path.suffix != SCRIPT:
        return submitted
    source = _checked(submitted)
    if _is_marimo(source):
        node = _one_cell(source)
        node.metadata[MARIMO] = True
    else:
        node = _cells(submitted.name, source) if _CELL.search(source) else _one_cell(source)
    return NotebookIn(name=f"{path.stem}.ipynb", content=notebook_text(node))


def _checked(submitted: NotebookIn) -> str:
    name, source = submitted.name, submitted.content.removeprefix("\ufeff")
    try:
        size = len(source.encode())
        binary = "\0" in source
    except UnicodeEncodeError:
        size, binary = 0, True
    if binary:
        raise InvalidInput(f"{name} is not a text.", accepted=_ACCEPTED, field="notebook")
    if size > MAX_SCRIPT_BYTES:
        raise TooLarge(
            f"{name} has {size / 2**20:.1f} MiB.",
            accepted=f"A script of at most {MAX_SCRIPT_BYTES >> 20} MiB: put data into a file.",
            field="notebook",
        )
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _is_marimo(source: str) -> bool:
    return bool(_IMPORTS_MARIMO.search(source) and _MARIMO.search(source))


def _cells(name: str, source: str) -> NotebookNode:
    """Convert a script with cells."""
    import jupytext  # noqa: PLC0415  # only needed for scripts

    count = sum(1 for _ in _CELL.finditer(source))
    if count > MAX_SCRIPT_CELLS:
        raise TooLarge(
            f"{name} has {count:,} cells.",
            accepted=f"A script of at most {MAX_SCRIPT_CELLS:,} cells.",
            field="notebook",
        )
    header = _HEADER.match(source)
    body = source[header.end() :] if header else source
    # Jupytext follows the header of a file, which may name a format that starts programs. Behind
    # the mark of a cell it looks for none.
    if not _CELL.match(body.lstrip("\n")):
        body = f"# %%\n{body}"
    try:
        node: NotebookNode = jupytext.reads(body.lstrip("\n"), fmt="py:percent")
    except ValueError as error:
        raise InvalidInput(
            f"{name} cannot be converted to a notebook: {error}.",
            accepted=_ACCEPTED,
            field="notebook",
        ) from error
    for cell in node.cells:
        cell.metadata.pop("lines_to_next_cell", None)
    node.metadata = _metadata(header["yaml"] if header else "")
    return node


def _one_cell(source: str) -> NotebookNode:
    node: NotebookNode = nbformat.v4.new_notebook(metadata=_metadata(""))  # type: ignore[no-untyped-call]
    node.cells.append(nbformat.v4.new_code_cell(source))  # type: ignore[no-untyped-call]
    return node


def _metadata(header: str) -> NotebookNode:
    """Return the metadata of the notebook, with the kernel that the header of the script names."""
    named = _kernel(header)
    default = {"name": DEFAULT_KERNEL, "display_name": "Python 3", "language": PYTHON}
    spec = {**default, "name": named, "display_name": named} if named else default
    return nbformat.from_dict({"kernelspec": spec})  # type: ignore[no-untyped-call, no-any-return]


def _kernel(header: str) -> str:
    import yaml  # noqa: PLC0415  # only needed for scripts

    if len(header) > _MOST_HEADER:
        return ""
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in header.split("\n"))
    try:
        found: Any = yaml.safe_load(text)
        return str(found["jupyter"]["kernelspec"]["name"])[:128]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
        return ""
