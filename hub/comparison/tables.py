"""Compare two tables by cell: HTML as pandas writes it, or a printed data frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Final

from .alignment import aligned
from .schemas import CellChangeOut, TableDifferenceOut
from .tolerance import LargestDifference, Tolerance, add_differences, numeric_text, same_text

Row = tuple[str, ...]
_MOST_CELLS: Final = 200_000
_MOST_CHANGES: Final = 50
_LONGEST: Final = 200
_SILENT: Final = frozenset({"script", "style", "template"})
_SHAPE: Final = re.compile(r"\n*\[\d+ rows x \d+ columns\]\s*\Z")


class TableParser(HTMLParser):
    """Collects the rows of all tables; text outside of a table is a row with one cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[Row] = []
        self._row: list[str] = []
        self._text: list[str] = []
        self._in_row = False
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag == "tr":
            self._end_row()
            self._in_row = True
        elif tag in {"td", "th"}:
            self._text.clear()
        elif tag in {"table", "p", "div", "br"} and not self._in_row:
            self._end_row()

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in {"td", "th"} and self._in_row:
            self._row.append(self._taken())
        elif tag in {"tr", "table", "p", "div"}:
            self._end_row()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._end_row()

    def _taken(self) -> str:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        return text

    def _end_row(self) -> None:
        rest = self._taken()
        if rest and not self._in_row:
            self._row.append(rest)
        if self._row:
            self.rows.append(tuple(self._row))
        self._row, self._in_row = [], False


def html_table(html: str) -> list[Row] | None:
    """Return the rows of HTML that contains a table; None if it contains none."""
    if "<table" not in html.lower():
        return None
    parser = TableParser()
    parser.feed(html)
    parser.close()
    return _bounded(parser.rows)


def printed_table(text: str) -> list[Row] | None:
    """Return the rows of a data frame that pandas has printed; None for any other text.

    It is recognized by its shape: the header has one word less than every row, whose first word is
    the index, and begins with spaces.
    """
    lines = _SHAPE.sub("", text).strip("\n").split("\n")
    header, rows = lines[0].split(), [line.split() for line in lines[1:]]
    if not header or not rows or not lines[0].startswith(" "):
        return None
    if any(len(row) != len(header) + 1 for row in rows):
        return None
    return _bounded([("", *header), *map(tuple, rows)])


def compare_tables(a: Sequence[Row], b: Sequence[Row], tolerance: Tolerance) -> TableDifferenceOut:
    """Compare two tables of which the first row is the header.

    Columns belong together by their names if the headers differ, and rows by their texts.
    """
    columns, removed, added = _columns(a[0] if a else (), b[0] if b else ())
    largest = LargestDifference()
    compared, changes, lost, new = 0, list[CellChangeOut](), 0, 0
    changed = 0
    for one, other in aligned(
        [_key(row) for row in a],
        [_key(row) for row in b],
        lambda at, to: _same_row(a[at], b[to], tolerance),
    ):
        if one is None or other is None:
            lost, new = lost + (other is None), new + (one is None)
            continue
        for column, (left, right) in enumerate(_cells(a[one], b[other], columns)):
            compared += 1
            if same_text(left, right, tolerance):
                continue
            changed += 1
            add_differences(left, right, tolerance, largest)
            if len(changes) < _MOST_CHANGES:
                changes.append(_change(a, one, _place(columns, column), left, right))
    return TableDifferenceOut(
        rows_a=len(a),
        rows_b=len(b),
        compared=compared,
        changed=changed,
        rows_removed=lost,
        rows_added=new,
        columns_removed=removed,
        columns_added=added,
        largest=largest.out(),
        changes=changes,
    )


def table_differs(found: TableDifferenceOut) -> bool:
    return bool(
        found.changed
        or found.rows_removed
        or found.rows_added
        or found.columns_removed
        or found.columns_added
    )


def _bounded(rows: list[Row]) -> list[Row] | None:
    """Return a table that is small enough; otherwise it is compared as text."""
    return rows if sum(map(len, rows)) <= _MOST_CELLS else None


Columns = list[tuple[int, int]] | None
"""Indices of the columns of both tables that belong together; None for all by position."""


def _columns(a: Row, b: Row) -> tuple[Columns, list[str], list[str]]:
    if a == b or len(set(a)) < len(a) or len(set(b)) < len(b) or not set(a) & set(b) - {""}:
        return None, [], []
    both = [(a.index(name), b.index(name)) for name in a if name in b]
    removed = [name[:_LONGEST] for name in a if name not in b]
    added = [name[:_LONGEST] for name in b if name not in a]
    if len(removed) == len(added) == len(a) - len(both) and len(a) == len(b):
        return None, [], []  # renamed columns: the header is compared like any row
    return both, removed, added


def _cells(a: Row, b: Row, columns: Columns) -> list[tuple[str, str]]:
    if columns is None or max(i for i, _ in columns) >= len(a) or _short(b, columns):
        longest = max(len(a), len(b))
        pad_a, pad_b = a + ("",) * (longest - len(a)), b + ("",) * (longest - len(b))
        return list(zip(pad_a, pad_b, strict=True))
    return [(a[one], b[other]) for one, other in columns]


def _short(row: Row, columns: list[tuple[int, int]]) -> bool:
    return max(other for _, other in columns) >= len(row)


def _place(columns: Columns, column: int) -> int:
    """Return the index of a compared column in the first table."""
    return columns[column][0] if columns and column < len(columns) else column


def _change(a: Sequence[Row], row: int, at: int, left: str, right: str) -> CellChangeOut:
    header = a[0]
    return CellChangeOut(
        row=(a[row][0] if a[row] else str(row))[:_LONGEST],
        column=(header[at] if at < len(header) else str(at + 1))[:_LONGEST],
        a=left[:_LONGEST],
        b=right[:_LONGEST],
    )


def _key(row: Row) -> object:
    return row[0] if len(row) > 1 and row[0] else tuple(numeric_text(cell).between for cell in row)


def _same_row(a: Row, b: Row, tolerance: Tolerance) -> bool:
    return len(a) == len(b) and all(
        same_text(one, other, tolerance) for one, other in zip(a, b, strict=True)
    )
