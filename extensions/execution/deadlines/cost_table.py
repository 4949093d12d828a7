"""How long each model takes on each worker: measured first, and kept true by each run."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

QUANTILE: Final = 0.9
"""Of the last runs: a request is admitted by a time that nine of ten keep."""
KEPT: Final = 50
_WARM_RUNS: Final = 3
_RUNS: Final = 20
Clock = Callable[[], float]


class CostTable:
    """Seconds by model and kind of worker; safe to use from any thread."""

    def __init__(self, kinds: Sequence[str]) -> None:
        """Args: kinds: of the workers, such as ``("cpu", "cpu", "cuda:0")``."""
        self._kinds = tuple(kinds)
        self._runs: dict[tuple[str, str], deque[float]] = {}
        self._costs: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def add(self, model: str, kind: str, seconds: float) -> None:
        """Note a run."""
        with self._lock:
            runs = self._runs.setdefault((model, kind), deque(maxlen=KEPT))
            runs.append(seconds)
            self._costs[model, kind] = sorted(runs)[math.ceil(QUANTILE * len(runs)) - 1]

    def of_kind(self, model: str, kind: str) -> float:
        """Return seconds; infinite if it never ran there."""
        return self._costs.get((model, kind), math.inf)

    def __call__(self, model: str, worker: int) -> float:
        return self.of_kind(model, self._kinds[worker])

    def fastest(self, model: str) -> float:
        return min(self.of_kind(model, kind) for kind in self._kinds)

    def least(self, model: str) -> float:
        """Return the seconds of the fastest run so far, anywhere."""
        with self._lock:
            return min(min(runs) for (name, _), runs in self._runs.items() if name == model)

    def utilisation(self, periods: Mapping[str, float]) -> float:
        """Return how many workers are busy if each model runs once a period on its fastest."""
        return sum(self.fastest(model) / period for model, period in periods.items())

    def measure(self, model: str, kind: str, run: Callable[[], object], clock: Clock) -> None:
        """Note some runs; the ones before them only warm."""
        for number in range(_WARM_RUNS + _RUNS):
            begun = clock()
            run()
            if number >= _WARM_RUNS:
                self.add(model, kind, clock() - begun)
