"""Expected seconds of executions: a cost of each execution, and one of each row."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

_NEWEST: Final = 0.2
"""Part of the newest execution in the averages."""
_SPREAD: Final = 1e-3
"""Least variance of the rows, relative to their mean squared, that tells both costs apart."""


@dataclass(slots=True, kw_only=True)
class _Averages:
    """Weighted averages over executions, the newest ones most."""

    rows: float
    seconds: float
    squares: float
    products: float


@dataclass(slots=True)
class ExecutionTimes:
    """What executions of models took, by model.

    The costs are those of a line through the executions. While all have equally many rows, the
    whole time counts as that of rows: what is expected is then rather too much.

    Attributes:
        row_seconds: that each row adds.
        execution_seconds: that an execution takes however few rows it has.
    """

    row_seconds: dict[str, float] = field(default_factory=dict)
    execution_seconds: dict[str, float] = field(default_factory=dict)
    _averages: dict[str, _Averages] = field(default_factory=dict)

    def expected(self, model: str, rows: int, most_rows: int) -> float:
        """Return the seconds of rows in executions of at most so many."""
        executions = math.ceil(rows / most_rows)
        return executions * self.execution_seconds.get(model, 0.0) + rows * self.row_seconds.get(
            model, 0.0
        )

    def note(self, model: str, rows: int, seconds: float) -> None:
        """Take the next measurement."""
        before = self._averages.get(model)
        now = _Averages(rows=rows, seconds=seconds, squares=rows**2, products=rows * seconds)
        if before is not None:
            now = _Averages(
                rows=_mixed(before.rows, now.rows),
                seconds=_mixed(before.seconds, now.seconds),
                squares=_mixed(before.squares, now.squares),
                products=_mixed(before.products, now.products),
            )
        self._averages[model] = now
        most = now.seconds / now.rows
        variance = now.squares - now.rows**2
        if variance > _SPREAD * now.rows**2:
            row = (now.products - now.rows * now.seconds) / variance
        elif self.execution_seconds.get(model):  # told apart before
            row = self.row_seconds.get(model, 0.0)
        else:
            row = most
        self.row_seconds[model] = min(max(row, 0.0), most)
        self.execution_seconds[model] = now.seconds - self.row_seconds[model] * now.rows


def _mixed(before: float, newest: float) -> float:
    return before + _NEWEST * (newest - before)
