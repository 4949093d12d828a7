"""Follow the losses that a running job reports, in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..attempts.reports import ReportTail
from ..insight.job_signs.findings import MetricSeries
from ..insight.job_signs.loss import is_loss

MOST_LOSSES: Final = 8
MOST_VALUES: Final = 1024
"""Of one loss: then only every second, fourth … report is kept."""


@dataclass(slots=True)
class _Kept:
    """Every ``stride``-th report of one name."""

    seen: int = 0
    stride: int = 1
    newest: int = -1
    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    times: array[float] = field(default_factory=lambda: array("d"))

    def add(self, step: int | None, value: float, at: float) -> None:
        self.newest = self.newest + 1 if step is None else step
        if self.seen % self.stride == 0:
            self.steps.append(self.newest)
            self.values.append(value)
            self.times.append(at)
            if len(self.values) > MOST_VALUES:
                self.steps, self.values = self.steps[::2], self.values[::2]
                self.times, self.stride = self.times[::2], 2 * self.stride
        self.seen += 1


class LossFollower:
    """Reads the losses of one attempt, each report once."""

    def __init__(self, folder: Path) -> None:
        self._tail = ReportTail(folder)
        self._kept: dict[str, _Kept] = {}

    def read(self, *, age: float, began: float) -> Mapping[str, MetricSeries]:
        """Return the losses so far.

        Args:
            age: seconds since the grant, of now.
            began: when that was, in seconds since the epoch. The times that a job gives are kept
                between the grant and now, and never go back.
        """
        for report in self._tail.new_reports():
            kept = self._kept.get(report.name)
            if kept is None:
                if len(self._kept) == MOST_LOSSES or not is_loss(report.name):
                    continue
                kept = self._kept[report.name] = _Kept()
            last = kept.times[-1] if kept.times else 0.0
            at = age if report.at is None else report.at - began
            kept.add(report.step, float(report.value), max(last, min(at, age)))
        return {
            name: MetricSeries(steps=kept.steps, values=kept.values, times=kept.times)
            for name, kept in self._kept.items()
        }
