"""Trace reader: parse the jobs of a file, select lines, and report malformed ones."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from io import TextIOBase, TextIOWrapper
from math import inf
from pathlib import Path

from ...errors import InvalidInput
from .formats import Format, LeftOut, moment
from .jobs import BadLine, Trace, TraceJob

_GZIP = b"\x1f\x8b"
_FILE = "A table of jobs in a text file is accepted, plain or compressed with gzip."
_LONGEST_LINE = 1 << 20
_DATE = 10
"""Length of a date without a time of day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions for the lines of a trace that are read.

    Attributes:
        where: values that columns must equal.
        since, until: submission times in seconds, both inclusive.
    """

    where: Mapping[str, str] = field(default_factory=dict)
    since: float = -inf
    until: float = inf


def first_moment(text: str) -> float:
    """Parse ``2017-10-01``, ``2017-10-01 07:00`` or a number of seconds."""
    return moment(text)


def last_moment(text: str) -> float:
    """Parse a time like ``first_moment``, but a date without a time as the end of that day."""
    if len(text.strip()) == _DATE:
        try:
            day = datetime.fromisoformat(text.strip())
        except ValueError:
            return moment(text)
        return moment((day + timedelta(days=1, microseconds=-1)).isoformat())
    return moment(text)


def read_trace(
    path: Path, form: Format, selection: Selection | None = None, *, skip_bad: bool = False
) -> Trace:
    """Read the jobs of a file, which may be compressed with gzip.

    Raises:
        InvalidInput: the file or a column is missing, or a selected line is malformed and
            ``skip_bad`` is not set. The sentence names the line.
    """
    selection = selection or Selection()
    jobs: list[TraceJob] = []
    left_out: Counter[str] = Counter()
    bad: list[BadLine] = []
    seen: set[str] = set()
    for number, row in _rows(path, form, selection):
        try:
            job = _job(row, form, number)
            if isinstance(job, LeftOut):
                left_out[job.value] += 1
            elif selection.since <= job.submitted_at <= selection.until:
                _check_unique(job, seen)
                jobs.append(job)
        except InvalidInput as error:
            if not skip_bad:
                raise InvalidInput(
                    f"{path.name}, line {number}: {error.message}",
                    accepted=f"{error.accepted} With --skip-bad, such lines are left out.",
                ) from error
            bad.append(BadLine(number=number, why=error.message))
    jobs.sort(key=lambda job: job.submitted_at)
    return Trace(name=path.name, jobs=tuple(jobs), left_out=dict(left_out), bad=tuple(bad))


Row = dict[str, str] | InvalidInput
"""Cells of a line by column, or the error of a malformed line."""


def _job(row: Row, form: Format, number: int) -> TraceJob | LeftOut:
    if isinstance(row, InvalidInput):
        raise row
    return form.read(row, f"line-{number}")


def _check_unique(job: TraceJob, seen: set[str]) -> None:
    if job.id in seen:
        raise InvalidInput(
            f"The id {job.id!r} is used in an earlier line too.", accepted="Ids must be unique."
        )
    seen.add(job.id)


def _rows(path: Path, form: Format, selection: Selection) -> Iterator[tuple[int, Row]]:
    """Yield the numbers and cells of the lines that match the selected column values."""
    try:
        with _opened(path) as file:
            reader = csv.reader(_lines(path, file, form.comment))
            columns = _header(reader, path, form, selection)
            while True:
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield reader.line_num, InvalidInput(f"It is not a row of a table: {error}.")
                    continue
                if len(cells) != len(columns):
                    if cells:
                        yield reader.line_num, _wrong_length(cells, columns)
                    continue
                row = dict(zip(columns, cells, strict=True))
                if all(row[column] == text for column, text in selection.where.items()):
                    yield reader.line_num, row
    except FileNotFoundError as error:
        raise InvalidInput(f"There is no file {path}.", accepted=_FILE) from error
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{path} cannot be read: {why}.", accepted=_FILE) from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIOBase]:
    with path.open("rb") as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        plain = gzip.GzipFile(fileobj=raw) if packed else raw
        yield TextIOWrapper(plain, encoding="utf-8-sig", errors="replace", newline="")


def _lines(path: Path, file: TextIOBase, comment: str) -> Iterator[str]:
    """Yield all lines; a comment becomes an empty line, to keep the line numbers."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise InvalidInput(
                f"{path.name} has a line of more than {_LONGEST_LINE:,} characters.",
                accepted=_FILE,
            )
        yield "\n" if comment and line.startswith(comment) else line


def _header(
    reader: Iterator[list[str]], path: Path, form: Format, selection: Selection
) -> list[str]:
    columns = next((cells for cells in reader if cells), [])
    lacking = [name for name in form.columns if name not in columns]
    if lacking:
        raise InvalidInput(
            f"{path.name} has no column {', '.join(lacking)}.",
            accepted=f"A trace of the form {form.name} has {', '.join(form.columns)}.",
        )
    for column in selection.where:
        if column not in columns:
            raise InvalidInput(
                f"{path.name} has no column {column!r}.",
                accepted=f"Its columns are {', '.join(columns)}.",
                field="where",
            )
    return columns


def _wrong_length(cells: list[str], columns: list[str]) -> InvalidInput:
    return InvalidInput(
        f"It has {len(cells)} cells.", accepted=f"The header has {len(columns)} columns."
    )
