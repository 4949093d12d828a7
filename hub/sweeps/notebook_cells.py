"""The code cells of a notebook and the parameters that it declares, read without papermill.

Papermill replaces an earlier injected cell, or inserts one right after the ``parameters`` cell;
cells without code, and those with the tag ``skip-execution``, are not executed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..admission.parameters import ParameterField
from ..errors import InvalidInput
from ..records.json_value import parse_json

PARAMETERS_TAG: Final = "parameters"
INJECTED_TAG: Final = "injected-parameters"
SKIPPED_TAG: Final = "skip-execution"
RAISES_TAG: Final = "raises-exception"
SHARE_TAG: Final = "carrel-share"
NO_SHARE_TAG: Final = "carrel-no-share"
PLAIN_TYPES: Final = frozenset({"int", "float", "bool", "str"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepParameter:
    """A parameter of the notebook.

    Attributes:
        field: its name, type and default, as the form of a job shows them.
        annotated: whether the notebook states one of ``PLAIN_TYPES``, as in ``depth: int = 2``.
    """

    field: ParameterField
    annotated: bool

    @property
    def name(self) -> str:
        return self.field.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCell:
    """A code cell.

    Attributes:
        number: from 1, as users count code cells.
        seconds: how long it took in an earlier run, if the notebook records it.
    """

    number: int
    source: str
    tags: frozenset[str] = frozenset()
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepNotebook:
    """The code of a notebook.

    Attributes:
        parameters: by name; empty if the notebook has no cell with the tag ``parameters``.
        injection: the number of cells that run before the values of a trial are assigned.
        python: whether its language is Python.
    """

    name: str
    cells: tuple[SweepCell, ...]
    parameters: Mapping[str, SweepParameter]
    injection: int
    python: bool = True


def read_sweep_notebook(name: str, text: str) -> SweepNotebook:
    """Read the text of an .ipynb file. Raises InvalidInput if it is not a notebook."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise _not_a_notebook(name, str(error)) from error
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(cells, list):
        raise _not_a_notebook(name, "it has no list of cells")
    found: list[SweepCell] = []
    after_parameters, injected, parameters = 0, None, ""
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source, tags = _source(cell), _tags(cell)
        if INJECTED_TAG in tags:
            injected = len(found) if injected is None else injected
            continue
        if PARAMETERS_TAG in tags and not after_parameters:
            after_parameters, parameters = len(found) + 1, source
        found.append(
            SweepCell(number=len(found) + 1, source=source, tags=tags, seconds=_seconds(cell))
        )
    return SweepNotebook(
        name=name,
        cells=tuple(found),
        parameters={each.name: each for each in declared_parameters(parameters)},
        injection=after_parameters if injected is None else injected,
        python=_is_python(document),
    )


def declared_parameters(source: str) -> Sequence[SweepParameter]:
    """Return the variables that the source of a ``parameters`` cell assigns at its top level."""
    try:
        return tuple(_declared(source).values())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _declared(source: str) -> Mapping[str, SweepParameter]:
    found: dict[str, SweepParameter] = {}
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                annotation = ""
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=given, value=ast.expr() as value
            ):
                annotation = _annotation(given)
            case _:
                continue
        field = ParameterField.of(
            name,
            annotation=annotation,
            default=ast.get_source_segment(source, value) or ast.unparse(value),
            help_text="",
        )
        found[name] = SweepParameter(field=field, annotated=annotation in PLAIN_TYPES)
    return found


def _annotation(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case _:
            return ast.unparse(node)


def _not_a_notebook(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{name} cannot be read as a notebook: {why}.",
        accepted="An .ipynb file of format 4, as Jupyter writes it.",
    )


def _source(cell: Mapping[str, object]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _metadata(cell: Mapping[str, object]) -> Mapping[str, object]:
    metadata = cell.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _tags(cell: Mapping[str, object]) -> frozenset[str]:
    tags = _metadata(cell).get("tags")
    listed = tags if isinstance(tags, list) else []
    return frozenset(tag for tag in listed if isinstance(tag, str))


def _seconds(cell: Mapping[str, object]) -> float | None:
    """Return the time of an earlier run, as papermill or JupyterLab has recorded it."""
    metadata = _metadata(cell)
    papermill, execution = metadata.get("papermill"), metadata.get("execution")
    if isinstance(papermill, dict) and isinstance(papermill.get("duration"), int | float):
        return _checked(float(papermill["duration"]))
    if isinstance(execution, dict):
        begin, end = execution.get("iopub.execute_input"), execution.get("shell.execute_reply")
        try:
            return _checked(_moment(end) - _moment(begin))
        except (TypeError, ValueError, OverflowError):
            return None
    return None


def _checked(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _moment(text: object) -> float:
    if not isinstance(text, str):
        raise TypeError(text)
    return datetime.fromisoformat(text).timestamp()


def _is_python(document: Mapping[str, object]) -> bool:
    metadata = _metadata(document)
    info, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    for place, key in ((info, "name"), (kernel, "language")):
        if isinstance(place, dict) and isinstance(place.get(key), str):
            return place[key].lower() in ("python", "ipython", "python3")
    return True
