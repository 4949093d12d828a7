"""The model of run times: three quantiles of the logarithm of the seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ..errors import InvalidInput
from .boosted_trees import BoostedTrees
from .run_history import Columns

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeModel:
    """A fitted model; ``model_fit.train`` makes one.

    Attributes:
        columns: its features beside those that all models have.
        trained_until: end of the newest run that it was fitted to, in seconds since the epoch.
        runs: number of runs that it was fitted to.
        typical, low, high: logarithms of seconds; 5 % of the runs lie below ``low`` and above
            ``high``.
    """

    columns: Columns
    trained_until: float
    runs: int
    typical: BoostedTrees
    low: BoostedTrees
    high: BoostedTrees

    def evaluate(self, features: Sequence[float]) -> tuple[float, float, float]:
        """Return the logarithms of low, typical and high seconds, in ascending order."""
        typical = self.typical.evaluate(features)
        low, high = self.low.evaluate(features), self.high.evaluate(features)
        return min(low, typical), typical, max(high, typical)

    def as_json(self) -> str:
        """Return the content of a model file."""
        return json.dumps(
            {
                "format": _FORMAT,
                "parameters": self.columns.parameters,
                "sizes": self.columns.sizes,
                "trained_until": self.trained_until,
                "runs": self.runs,
                "typical": self.typical.as_json(),
                "low": self.low.as_json(),
                "high": self.high.as_json(),
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, content: str | bytes) -> Self:
        """Load a model file. Raises InvalidInput for a damaged one, or one of another version."""
        try:
            values = json.loads(content)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or values.get("format") != _FORMAT:
            raise _refused("it is no model of this version")
        names = values.get("parameters"), values.get("sizes")
        until, runs = values.get("trained_until"), values.get("runs")
        if not all(isinstance(each, list) and all(map(_is_text, each)) for each in names):
            raise _refused("the names of its columns are missing")
        if not isinstance(until, int | float) or not math.isfinite(until) or type(runs) is not int:
            raise _refused("its time of training is missing")
        columns = Columns(parameters=tuple(names[0] or ()), sizes=tuple(names[1] or ()))
        return cls(
            columns=columns,
            trained_until=until,
            runs=runs,
            typical=BoostedTrees.from_json(values.get("typical"), columns.count),
            low=BoostedTrees.from_json(values.get("low"), columns.count),
            high=BoostedTrees.from_json(values.get("high"), columns.count),
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _refused(why: str) -> InvalidInput:
    return InvalidInput(
        f"The model of run times cannot be used: {why}.", accepted="A model that the service wrote."
    )
