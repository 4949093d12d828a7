"""The values that a job has reported by ``carrel.report``, in the folder of an attempt.

The job writes the file: it is read bounded, and lines that are no reports are left out.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files.safe_fs import opened_file
from .spec import REPORTS

MOST_LINES: Final = 100_000
_MOST_BYTES: Final = 16 << 20
_LAST_BYTES: Final = 16 << 10
_MOST_NAMES: Final = 100
_LONGEST_NAME: Final = 100
_LONGEST_LINE: Final = 4096
_EXACT: Final = 1 << 53
"""Larger integers are not exact as a float, nor in every JSON reader."""
_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSeries:
    """The values of one name, in the order of their steps.

    Attributes:
        steps: increasing.
        values: one for each step; NaN and infinities included.
    """

    steps: Sequence[int]
    values: Sequence[float]

    @property
    def last(self) -> float:
        return self.values[-1]


def read_reports(folder: Path, name: str = REPORTS) -> Mapping[str, ReportedSeries]:
    """Return the reported values by name; of several values for a step the last one counts."""
    try:
        with opened_file(folder, name) as file:
            lines = file.read(_MOST_BYTES).split(b"\n", MOST_LINES)[:MOST_LINES]
    except OSError:
        return {}
    found: dict[str, dict[int, float]] = {}
    newest: dict[str, int] = {}
    for line in lines:
        report = _parse(line)
        if report is None or (report.name not in found and len(found) == _MOST_NAMES):
            continue
        at = newest.get(report.name, -1) + 1 if report.step is None else report.step
        newest[report.name] = at
        found.setdefault(report.name, {})[at] = report.value
    return {key: _series(sorted(points.items())) for key, points in found.items()}


def last_reports(folder: Path, name: str = REPORTS) -> Mapping[str, float]:
    """Return the newest value of each name among the last lines, without reading the others."""
    try:
        with opened_file(folder, name) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
            lines = file.read(_LAST_BYTES).split(b"\n")
    except OSError:
        return {}
    reports = [report for report in map(_parse, lines) if report is not None]
    return {report.name: report.value for report in reports[-_MOST_NAMES:]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedValue:
    """One report.

    Attributes:
        step: None for the one after the last report of this name.
        at: the time that the job gives, in seconds since the epoch; None without one.
    """

    name: str
    value: float
    step: int | None
    at: float | None = None


def _parse(line: bytes) -> ReportedValue | None:
    """Return the report in a line; None for a line that ``carrel.report`` does not write."""
    if len(line) > _LONGEST_LINE:
        return None
    # Depth does not matter here, and to check it takes a hundred times as long.
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        found = json.loads(line)
        if not isinstance(found, dict):
            return None
        name, value, step = found["name"], found["value"], found["step"]
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            return None
        # Half of a surrogate pair is not printable: no page could be sent with it.
        if not name.isprintable() or (isinstance(value, str) and value not in _NOT_FINITE):
            return None
        if step is not None and (type(step) is not int or not 0 <= step < _EXACT):
            return None
        return ReportedValue(name=name, value=number(value), step=step, at=_time(found.get("at")))
    return None


def _time(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
        return found if math.isfinite(found) else None
    return None


def number(value: float | str) -> float:
    """Return a reported number; an integer stays one, so that it can be one of another job.

    Raises:
        ValueError, TypeError, OverflowError: it is no number.
    """
    found = float(value)
    return value if type(value) is int and abs(value) <= _EXACT else found


class ReportTail:
    """Reads the reports of a job while it writes them, each one once."""

    def __init__(self, folder: Path, file: str = REPORTS) -> None:
        self._folder, self._file = folder, file
        self._offset = 0

    def new_reports(self) -> list[ReportedValue]:
        """Return the reports that have been added; none if the file cannot be read."""
        try:
            with opened_file(self._folder, self._file) as file:
                file.seek(self._offset)
                added = file.read(max(0, _MOST_BYTES - self._offset))
        except OSError:
            return []
        whole, end, _ = added.rpartition(b"\n")  # the job may be writing the last line
        self._offset += len(whole) + len(end)
        return [report for line in whole.split(b"\n") if (report := _parse(line)) is not None]


class ReportFollower:
    """Reads the values of one name while a job reports them, each one once.

    Attributes:
        seen: how many values it has returned.
    """

    def __init__(self, folder: Path, file: str, name: str) -> None:
        self._tail, self._name = ReportTail(folder, file), name
        self._newest = -1
        self.seen = 0

    def new_points(self) -> list[tuple[int, float]]:
        """Return steps and values that have been added; none if the file cannot be read."""
        found: list[tuple[int, float]] = []
        for report in self._tail.new_reports():
            if report.name != self._name:
                continue
            self._newest = self._newest + 1 if report.step is None else report.step
            found.append((self._newest, report.value))
        self.seen += len(found)
        return found


def _series(points: Iterable[tuple[int, float]]) -> ReportedSeries:
    steps, values = zip(*points, strict=True)
    return ReportedSeries(steps=steps, values=values)


def joined(attempts: Iterable[Mapping[str, ReportedSeries]]) -> Mapping[str, ReportedSeries]:
    """Return the reported values of a job from those of its attempts, newest first.

    An attempt that goes on from a checkpoint continues a series: it replaces the earlier values
    from its own first step on. Attempts before one that has begun all series at step 0 are not
    read: it has started from the beginning.
    """
    whole: dict[str, ReportedSeries] = {}
    for earlier in attempts:
        for name, series in earlier.items():
            if name not in whole:
                if len(whole) < _MOST_NAMES:
                    whole[name] = series
                continue
            later = whole[name]
            kept = bisect_left(series.steps, later.steps[0])
            whole[name] = ReportedSeries(
                steps=(*series.steps[:kept], *later.steps),
                values=(*series.values[:kept], *later.values),
            )
        if whole and all(series.steps[0] == 0 for series in whole.values()):
            break
    return whole


def thinned(series: ReportedSeries, points: int) -> ReportedSeries:
    """Return at most ``points`` points: the ends, and the extremes of equal parts between.

    ``points``: at least 4.
    """
    count = len(series.steps)
    if count <= points:
        return series
    parts = max(1, (points - 2) // 2)
    kept = {0, count - 1}
    for part in range(parts):
        indexes = range(count * part // parts, count * (part + 1) // parts)
        finite = [at for at in indexes if math.isfinite(series.values[at])]
        if finite:
            kept |= {
                min(finite, key=series.values.__getitem__),
                max(finite, key=series.values.__getitem__),
            }
    return _series((series.steps[at], series.values[at]) for at in sorted(kept))
