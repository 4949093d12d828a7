"""Print the differences between two runs, as ``diff -u`` marks lines: ``-``, ``+`` and colour."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ...comparison.schemas import (
    CellDifferenceOut,
    ComparisonOut,
    OutputDifferenceOut,
    TextDifferenceOut,
)
from ...comparison.sentences import summary_sentence, text_sentence
from ..common.display import printable
from ..common.terminal import plain

_TITLES = {
    "sources": "Command",
    "outputs": "Result",
    "parameters": "Parameters",
    "environment": "Environment",
}
_MOST_CHANGES = 20


def printed(found: ComparisonOut) -> Iterator[str]:
    """Yield the lines about all differences, and at last the result."""
    yield click.style(f"--- {printable(found.a.name)}", fg="red")
    yield click.style(f"+++ {printable(found.b.name)}", fg="green")
    yield from _facts(found)
    for cell in found.cells:
        if cell.state != "equal":
            yield from _cell(cell)
    if found.log is not None and found.log.rows:
        yield ""
        yield click.style(f"Log: {text_sentence(found.log)}", bold=True)
        yield from _rows(found.log)
    yield ""
    yield from found.notes
    yield click.style(summary_sentence(found.summary, equal=found.equal), bold=True)


def _facts(found: ComparisonOut) -> Iterator[str]:
    different = [fact for fact in found.facts if not fact.equal and fact.part in _TITLES]
    for part, title in _TITLES.items():
        facts = [fact for fact in different if fact.part == part]
        if not facts:
            continue
        yield ""
        yield click.style(title, bold=True)
        for fact in facts:
            name = "" if part in {"sources", "outputs"} else f"{printable(fact.name)}: "
            yield _removed(f"{name}{printable(fact.a) or '(none)'}")
            yield _added(f"{name}{printable(fact.b) or '(none)'}")


def _cell(cell: CellDifferenceOut) -> Iterator[str]:
    yield ""
    yield click.style(cell_title(cell), bold=True)
    if cell.source_rows is not None:
        yield from _rows(cell.source_rows)
    elif cell.state in {"removed", "added"}:
        mark = _removed if cell.state == "removed" else _added
        yield from (mark(plain(line)) for line in cell.source.split("\n"))
        return
    for output in cell.outputs:
        if output.state != "equal":
            yield from _output(output)


def cell_title(cell: CellDifferenceOut) -> str:
    """Return the numbers of a cell in both runs, and what became of it."""
    if cell.a is None:
        return f"Cell {cell.b} of the second run: added"
    if cell.b is None:
        return f"Cell {cell.a} of the first run: removed"
    number = f"Cell {cell.a}" if cell.a == cell.b else f"Cell {cell.a} and {cell.b}"
    what = [
        word
        for word, is_so in (
            ("moved", cell.moved),
            ("source changed", cell.source_changed),
            ("output changed", cell.outputs_changed),
        )
        if is_so
    ]
    return f"{number}: {', '.join(what)}"


def _output(output: OutputDifferenceOut) -> Iterator[str]:
    yield f"  {printable(output.name)}: {printable(output.message)}"
    if output.text is not None:
        yield from _rows(output.text)
    if output.table is not None:
        for change in output.table.changes[:_MOST_CHANGES]:
            place = f"row {printable(change.row)}, {printable(change.column)}: "
            yield _removed(f"{place}{printable(change.a)}")
            yield _added(f"{place}{printable(change.b)}")
        if len(output.table.changes) > _MOST_CHANGES:
            yield f"  … of {output.table.changed:,} changed cells"


def _rows(text: TextDifferenceOut) -> Iterator[str]:
    for row in text.rows:
        match row.kind:
            case "gap":
                yield f"  … {row.count:,} equal {'line' if row.count == 1 else 'lines'}"
            case "same" | "close":
                yield f"    {plain(row.b)}"
            case _:
                if row.kind != "added":
                    yield _removed(plain(row.a))
                if row.kind != "removed":
                    yield _added(plain(row.b))
    if text.left_out:
        yield f"  … {text.left_out:,} more lines"


def _removed(line: str) -> str:
    return click.style(f"  - {line}", fg="red")


def _added(line: str) -> str:
    return click.style(f"  + {line}", fg="green")
