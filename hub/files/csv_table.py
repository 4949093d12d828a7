"""Tables for spreadsheets (CSV): read what users export, whatever its delimiter, and write rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ..errors import InvalidInput

Cell: TypeAlias = str | float | None

_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(f'"?sep=([{_DELIMITERS}])"?[{_DELIMITERS} ]*', re.IGNORECASE)
"""The first line by which Excel is told the delimiter."""


def lines_of(text: str, *, title: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not empty, with their numbers; the heading is the first.

    Args:
        title: names the table in messages, such as "roster".

    Raises:
        InvalidInput: the text is not CSV, or empty.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    stated = _SEPARATOR.fullmatch(lines[0])
    if stated:
        lines[0] = ""
    heading = next((line for line in lines if line.strip()), "")
    # By the heading alone: names and sections may contain any delimiter.
    delimiter = stated[1] if stated else max(_DELIMITERS, key=heading.count)
    source = io.StringIO("\n".join(lines))
    reader = csv.reader(source, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        found = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise InvalidInput(
            f"Line {reader.line_num} of the {title} cannot be read: {error}."
        ) from error
    if not found:
        raise InvalidInput(f"The {title} is empty.")
    return found


def without_empty_end(cells: Sequence[str]) -> Sequence[str]:
    """Return the cells without empty ones at the end, which spreadsheets add."""
    end = len(cells)
    while end and not cells[end - 1].strip():
        end -= 1
    return cells[:end]


def csv_of(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as CSV: None is an empty cell, and no spreadsheet takes a text for a formula."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    for row in rows:
        out.writerow(_harmless(cell) if isinstance(cell, str) else cell for cell in row)
    return text.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text
