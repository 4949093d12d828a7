"""Upgrade and repair a notebook that violates the schema, and report the repairs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import nbformat
from nbformat.validator import isvalid, normalize

from ..messages import units

FORMAT: Final = 4
MINOR: Final = 5
DEFAULT_KERNEL: Final = "python3"
PYTHON: Final = "python"
_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TAG: Final = re.compile(r"[^,]+")
_ANY_CELL: Final = frozenset({"id", "cell_type", "metadata", "source"})
_TEXT_CELL: Final = _ANY_CELL | {"attachments"}
_CELLS: Final = {
    "code": _ANY_CELL | {"outputs", "execution_count"},
    "markdown": _TEXT_CELL,
    "raw": _TEXT_CELL,
}
"""The fields of each type of cell."""
_OUTPUTS: Final[dict[object, frozenset[str]]] = {
    "execute_result": frozenset({"output_type", "data", "metadata", "execution_count"}),
    "display_data": frozenset({"output_type", "data", "metadata"}),
    "stream": frozenset({"output_type", "name", "text"}),
    "error": frozenset({"output_type", "ename", "evalue", "traceback"}),
}
_NOTEBOOK: Final = frozenset({"cells", "metadata", "nbformat", "nbformat_minor"})
_MOST_NAMES: Final = 4
_LONGEST_NAME: Final = 40
MALFORMED: Final = (
    nbformat.ValidationError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Exceptions of nbformat, which content of another shape can break before the validation."""

# JSON that is not validated yet.
Raw: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class NotebookRepair:
    """Repairs one notebook, and counts the repairs of each kind.

    Attributes:
        upgrade: the original format; empty if the upgrade changed only ids.
        kernel: whether the default kernel was set, because the format has no kernel names.
        new_ids, retyped, outputs: the number of repaired cells, cells and outputs.
        added, removed, moved: the number of repairs by the name of the field.
        metadata: the number of removed entries.
    """

    upgrade: str = ""
    kernel: bool = False
    new_ids: int = 0
    retyped: int = 0
    outputs: int = 0
    metadata: int = 0
    added: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)

    def upgraded(self, raw: Raw, version: int) -> Raw:
        """Convert a notebook of format 2 or 3."""
        self._add(raw, "metadata", dict, dict)
        minor = self._minor(raw)
        cells = [cell for sheet in raw["worksheets"] for cell in sheet["cells"]]
        code = [cell for cell in cells if cell.get("cell_type") == "code"]
        for cell in code:
            if cell.setdefault("outputs", []) is None:
                cell["outputs"] = []
        named = "kernelspec" in raw["metadata"]
        self.kernel = not named and {cell.get("language", PYTHON) for cell in code} <= {PYTHON}
        self.upgrade = str(version)
        node = nbformat.versions[version].to_notebook_json(raw, minor=minor)
        found: Raw = nbformat.convert(node, FORMAT)  # type: ignore[no-untyped-call]
        for cell in found["cells"]:
            cell.pop("id", None)  # random; ``_give_ids`` sets reproducible ones
        if self.kernel:
            spec = {"name": DEFAULT_KERNEL, "display_name": "Python 3", "language": PYTHON}
            found["metadata"]["kernelspec"] = spec
        found["nbformat_minor"] = 0
        return found

    def apply(self, raw: Raw) -> Raw:
        """Return a valid notebook of format 4.5. Raises one of ``MALFORMED``."""
        minor = self._minor(raw)
        if not self.upgrade and (
            minor > MINOR or (minor < MINOR and any("id" in cell for cell in raw["cells"]))
        ):
            self.upgrade = f"{FORMAT}.{minor}"
        raw["nbformat_minor"] = MINOR
        self._give_ids(raw["cells"], expected=minor >= MINOR)
        if isvalid(raw):  # type: ignore[no-untyped-call]
            return raw
        self._repair_notebook(raw)
        for cell in raw["cells"]:
            self._repair_cell(cell)
        changes, raw = normalize(raw, FORMAT, MINOR, strip_invalid_metadata=True)
        self.metadata += changes
        nbformat.validate(raw)
        return raw

    def _minor(self, raw: Raw) -> int:
        minor = raw.get("nbformat_minor")
        if type(minor) is not int or minor < 0:
            if raw["nbformat"] == FORMAT:  # earlier formats do not require it
                self._count(self.added, "nbformat_minor")
            raw["nbformat_minor"] = minor = 0
        return minor

    def _give_ids(self, cells: list[Raw], *, expected: bool) -> None:
        """Give every cell a unique id, which is the same whenever the file is read."""
        taken: set[str] = set()
        for cell in cells:
            cell_id = cell.get("id")
            if not (isinstance(cell_id, str) and _ID.fullmatch(cell_id)) or cell_id in taken:
                self.new_ids += expected or "id" in cell
                cell["id"] = _id_of(cell, taken)
            taken.add(str(cell["id"]))

    def _repair_notebook(self, raw: Raw) -> None:
        self._remove_others(raw, _NOTEBOOK)
        self._add(raw, "metadata", dict, dict)
        spec = raw["metadata"].get("kernelspec")
        if isinstance(spec, dict) and isinstance(spec.get("name"), str):
            self._add(spec, "display_name", lambda: spec["name"])

    def _repair_cell(self, cell: Raw) -> None:
        if cell.get("cell_type") not in _CELLS:
            cell["cell_type"] = "raw"  # a text that is not executed
            self.retyped += 1
        self._add(cell, "metadata", dict, dict)
        self._repair_tags(cell["metadata"])
        if cell["cell_type"] == "code":
            self._add(cell, "outputs", list, list)
            self._add(cell, "execution_count", lambda: None, (int, type(None)))
            cell["outputs"] = list(self._valid_outputs(cell["outputs"]))
            if isinstance(cell.get("collapsed"), bool):  # as in format 3
                cell["metadata"].setdefault("collapsed", cell.pop("collapsed"))
                self._count(self.moved, "collapsed")
        else:
            # A code cell without a source is not repaired: its code is unknown.
            self._add(cell, "source", str)
        self._remove_others(cell, _CELLS[cell["cell_type"]])

    def _repair_tags(self, metadata: Raw) -> None:
        """Remove invalid tags only, because another tag may mark the parameters cell."""
        tags = metadata.get("tags")
        if isinstance(tags, list):
            valid = [tag for tag in tags if isinstance(tag, str) and _TAG.fullmatch(tag)]
            metadata["tags"] = list(dict.fromkeys(valid))
            self.metadata += len(tags) - len(metadata["tags"])

    def _valid_outputs(self, outputs: list[Raw]) -> Iterator[Raw]:
        """Yield the valid outputs; the others are dropped, because execution replaces them."""
        for output in outputs:
            kind = output.get("output_type") if isinstance(output, dict) else None
            if kind in _OUTPUTS:
                if kind in ("execute_result", "display_data"):
                    self._add(output, "metadata", dict, dict)
                if kind == "execute_result":
                    self._add(output, "execution_count", lambda: None)
                if kind == "stream":
                    self._add(output, "name", lambda: "stdout")
                self._remove_others(output, _OUTPUTS[kind])
                if _is_output(output):
                    yield output
                    continue
            self.outputs += 1

    def _add(
        self,
        holder: Raw,
        name: str,
        default: Callable[[], object],
        kind: type | tuple[type, ...] = object,
    ) -> None:
        """Set a field to its default if it is missing or has another type."""
        if name not in holder or not isinstance(holder[name], kind):
            holder[name] = default()
            self._count(self.added, name)

    def _remove_others(self, holder: Raw, known: Collection[str]) -> None:
        for name in [key for key in holder if key not in known]:
            del holder[name]
            self._count(self.removed, name)

    @staticmethod
    def _count(numbers: dict[str, int], name: str) -> None:
        numbers[name] = numbers.get(name, 0) + 1

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each kind of repair, for the owner."""
        if self.upgrade:
            yield f"Upgraded from notebook format {self.upgrade} to {FORMAT}.{MINOR}."
        if self.kernel:
            yield f"Format {self.upgrade} names no kernel: it runs with {DEFAULT_KERNEL}."
        if self.new_ids:
            yield (
                f"New ids for {units.count(self.new_ids, 'cell')}: an id must be unique, "
                "and of letters, digits, - and _."
            )
        if self.added:
            yield f"Added missing fields: {_names(self.added)}."
        if self.moved:
            yield f"Moved to the metadata of cells: {_names(self.moved)}."
        if self.removed:
            yield f"Removed fields that the format does not have: {_names(self.removed)}."
        if self.retyped:
            yield f"{units.count(self.retyped, 'cell')} of an unknown type: kept as raw text."
        if self.outputs:
            yield f"Removed {units.count(self.outputs, 'output')} that {_were(self.outputs)} valid."
        if self.metadata:
            entries = "entry" if self.metadata == 1 else "entries"
            yield (
                f"Removed {self.metadata} {entries} of metadata that {_were(self.metadata)} valid."
            )


def _id_of(cell: Raw, taken: Collection[str]) -> str:
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    named = marks.get("grade_id") if isinstance(marks, dict) else None
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(source)
    text = str(named or f"{cell.get('cell_type')}\n{source}")
    while True:
        found = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
        if found not in taken:
            return found
        text = f"{text}+"


def _is_output(output: Raw) -> bool:
    try:
        nbformat.validate(output, ref="output", version=FORMAT)
    except MALFORMED:
        return False
    return True


def _names(numbers: dict[str, int]) -> str:
    shown = [
        f"{ascii(name[:_LONGEST_NAME])[1:-1]}" + (f" ({number} times)" if number > 1 else "")
        for name, number in list(numbers.items())[:_MOST_NAMES]
    ]
    more = len(numbers) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])


def _were(number: int) -> str:
    return "was not" if number == 1 else "were not"
