"""Compare two runs: the facts of both, the cells of notebooks, the logs of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidInput
from .cells import MOST_CELLS, Cell, moved_cells, paired_cells
from .facts import RunFacts, compare_facts
from .outputs import compare_outputs, joined
from .schemas import (
    CellDifferenceOut,
    ComparisonOut,
    ComparisonSummaryOut,
    FactOut,
    Part,
    TextDifferenceOut,
)
from .text import compare_lines, compare_text, differs
from .tolerance import Tolerance

_MOST_CELLS = 5000
_MOST_SHOWN = 20_000
"""Characters of an equal source that a page can show."""
_ALL = 1 << 30


class Comparison:
    """Collects the differences between two runs.

    Usage: ``Comparison(a, b, tolerance).of_notebooks(cells_a, cells_b)``, or ``of_logs``.
    """

    def __init__(
        self,
        a: RunFacts,
        b: RunFacts,
        tolerance: Tolerance,
        *,
        ignored: Sequence[Part] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self._a, self._b = a, b
        self._tolerance = tolerance
        self._ignored = list(ignored)
        self._notes = list(notes)
        self._facts = compare_facts(a, b, tolerance)

    def of_notebooks(self, a: Sequence[Cell], b: Sequence[Cell]) -> ComparisonOut:
        """Compare the cells of two notebooks.

        Raises:
            InvalidInput: a notebook has more than 5,000 cells.
        """
        for about, cells in ((self._a.about, a), (self._b.about, b)):
            if len(cells) > _MOST_CELLS:
                raise InvalidInput(
                    f"The notebook of {about.name} has {len(cells):,} cells.",
                    accepted=f"At most {_MOST_CELLS:,} cells can be compared.",
                )
        pairs, all_aligned = paired_cells(a, b)
        if not all_aligned:
            self._notes.append(
                f"More than {MOST_CELLS} cells differ: they are compared by their position."
            )
        moved = moved_cells(pairs, a, b)
        gone = set(moved.values())
        compared = [
            self._cell(a, b, moved.get(other, one) if other is not None else one, other, moved)
            for one, other in pairs
            if not (other is None and one in gone)
        ]
        return self._result(cells=compared)

    def of_logs(self, a: str, b: str) -> ComparisonOut:
        """Compare the logs of two commands by lines."""
        return self._result(log=compare_text(a, b, self._tolerance))

    def _cell(
        self,
        a: Sequence[Cell],
        b: Sequence[Cell],
        one: int | None,
        other: int | None,
        moved: Mapping[int, int],
    ) -> CellDifferenceOut:
        cell_a, cell_b = None if one is None else a[one], None if other is None else b[other]
        known = cell_b or cell_a or {}
        source_a, source_b = _source(cell_a), _source(cell_b)
        kind_changed = bool(cell_a and cell_b and cell_a["cell_type"] != cell_b["cell_type"])
        both = cell_a is not None and cell_b is not None
        source_changed = not both or source_a != source_b or kind_changed
        outputs = compare_outputs(_listed(cell_a), _listed(cell_b), self._tolerance)
        outputs_changed = any(each.state != "equal" for each in outputs)
        is_moved = other is not None and other in moved
        changed = source_changed or outputs_changed or is_moved
        return CellDifferenceOut(
            state="added"
            if cell_a is None
            else "removed"
            if cell_b is None
            else "changed"
            if changed
            else "equal",
            kind=str(known.get("cell_type", "")),
            a=None if one is None else one + 1,
            b=None if other is None else other + 1,
            moved=is_moved,
            source_changed=source_changed,
            outputs_changed=outputs_changed,
            source="" if both and source_a != source_b else (source_b or source_a)[:_MOST_SHOWN],
            source_rows=compare_lines(
                source_a.split("\n"), source_b.split("\n"), None, context=_ALL
            )
            if both and source_a != source_b
            else None,
            outputs=outputs,
        )

    def _result(
        self, *, cells: list[CellDifferenceOut] | None = None, log: TextDifferenceOut | None = None
    ) -> ComparisonOut:
        summary = summary_of(cells or [], self._facts, log)
        counts: Mapping[Part, int] = {
            "sources": summary.sources,
            "outputs": summary.outputs,
            "parameters": summary.parameters,
            "environment": summary.environment,
        }
        return ComparisonOut(
            equal=not any(number for part, number in counts.items() if part not in self._ignored),
            a=self._a.about,
            b=self._b.about,
            relative=self._tolerance.relative,
            absolute=self._tolerance.absolute,
            ignored=self._ignored,
            summary=summary,
            facts=self._facts,
            cells=cells or [],
            log=log,
            notes=self._notes,
        )


def summary_of(
    cells: Sequence[CellDifferenceOut], facts: Sequence[FactOut], log: TextDifferenceOut | None
) -> ComparisonSummaryOut:
    """Count the differences."""
    states = [cell.state for cell in cells]
    outputs = sum(each.state != "equal" for cell in cells for each in cell.outputs)
    return ComparisonSummaryOut(
        cells=len(cells),
        equal=states.count("equal"),
        changed=states.count("changed"),
        removed=states.count("removed"),
        added=states.count("added"),
        moved=sum(cell.moved for cell in cells),
        sources=sum(cell.source_changed or cell.moved for cell in cells)
        + _different(facts, "sources"),
        outputs=outputs + (log is not None and differs(log)) + _different(facts, "outputs"),
        parameters=_different(facts, "parameters"),
        environment=_different(facts, "environment"),
    )


def _different(facts: Sequence[FactOut], part: str) -> int:
    return sum(fact.part == part and not fact.equal for fact in facts)


def _source(cell: Cell | None) -> str:
    return "" if cell is None else joined(cell.get("source"))


def _listed(cell: Mapping[str, Any] | None) -> object:
    return [] if cell is None else cell.get("outputs", [])
