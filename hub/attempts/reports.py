"""The values that a job has reported by ``carrel.report``, in the folder of an attempt.

The job writes the file: it is read bounded, and lines that are no reports are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files.safe_fs import opened_file
from ..records.json_value import parse_json
from .spec import REPORTS

_MOST_BYTES: Final = 16 << 20
_MOST_NAMES: Final = 100
_LONGEST_NAME: Final = 100


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
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    found: dict[str, dict[int, float]] = {}
    newest: dict[str, int] = {}
    for line in text.split("\n"):
        with suppress(ValueError, TypeError, KeyError):
            report = parse_json(line)
            if not isinstance(report, dict):
                continue
            key, value, step = report["name"], float(report["value"]), report["step"]
            if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_NAME:
                continue
            if key not in found and len(found) == _MOST_NAMES:
                continue
            at = newest.get(key, -1) + 1 if step is None else step
            if isinstance(at, bool) or not isinstance(at, int) or at < 0:
                continue
            newest[key] = at
            found.setdefault(key, {})[at] = value
    return {key: _series(sorted(points.items())) for key, points in found.items()}


def _series(points: Iterable[tuple[int, float]]) -> ReportedSeries:
    steps, values = zip(*points, strict=True)
    return ReportedSeries(steps=steps, values=values)


def thinned(series: ReportedSeries, points: int) -> ReportedSeries:
    """Return at most about ``points`` points: the ends, and the extremes of equal parts between."""
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
