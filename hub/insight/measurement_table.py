"""Read a CSV file of measurements, with errors that name the line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import InvalidInput

_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementColumns:
    """The columns of a file.

    Attributes:
        names: all known columns.
        required: those that must be there.
        accepted: a sentence that describes the file, for errors.
        most_rows: how many rows it may have.
    """

    names: Sequence[str]
    required: Sequence[str]
    accepted: str
    most_rows: int


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One row: its line in the file and its values by column."""

    line: int
    values: Mapping[str, str]

    def number(self, name: str, most: float, *, zero: bool = False) -> float:
        """Return a value above 0 (or of 0, if ``zero``) and of at most ``most``.

        Raises:
            InvalidInput: it is anything else.
        """
        text = self.values[name]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (0 < number <= most or (zero and number == 0)):
            least = "from 0" if zero else "above 0"
            raise self._wrong(name, f"A number {least}, of at most {most:,.0f}.")
        return number

    def count(self, name: str, most: int) -> int:
        """Return a whole number from 1 to ``most``.

        Raises:
            InvalidInput: it is anything else.
        """
        text = self.values[name].strip()
        digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not digits or not 1 <= int(text) <= most:
            raise self._wrong(name, f"A whole number from 1 to {most:,}.")
        return int(text)

    def _wrong(self, name: str, accepted: str) -> InvalidInput:
        shown = self.values[name][:_SHOWN]
        return InvalidInput(
            f"Line {self.line}: {shown!r} is not a value of {name}.", accepted=accepted
        )


def measured_rows(lines: Iterable[str], columns: MeasurementColumns) -> Iterator[MeasuredRow]:
    """Yield the rows below the heading.

    Raises:
        InvalidInput: a column is missing or unknown, a row has too many or too few values, there
            are too many rows, or this is not CSV.
    """
    accepted = columns.accepted
    reader = csv.DictReader(lines, strict=True, skipinitialspace=True)
    try:
        _check_heading(reader.fieldnames or (), columns)
        for number, row in enumerate(reader, start=1):
            if number > columns.most_rows:
                raise InvalidInput(
                    f"There are more than {columns.most_rows:,} rows.", accepted=accepted
                )
            if None in row or None in row.values():
                raise InvalidInput(
                    f"Line {reader.line_num} has more or fewer values than the heading.",
                    accepted=accepted,
                )
            yield MeasuredRow(reader.line_num, row)
    except csv.Error as error:
        raise InvalidInput(f"This is not a CSV file: {error}.", accepted=accepted) from error


def _check_heading(names: Sequence[str], columns: MeasurementColumns) -> None:
    if unknown := [name for name in names if name not in columns.names]:
        shown = ", ".join(map(repr, unknown))[: 5 * _SHOWN]
        raise InvalidInput(f"Unknown columns: {shown}.", accepted=columns.accepted)
    if missing := [name for name in columns.required if name not in names]:
        raise InvalidInput(f"Missing columns: {', '.join(missing)}.", accepted=columns.accepted)
    if len(set(names)) < len(names):
        raise InvalidInput("A column occurs twice.", accepted=columns.accepted)
