"""Predict run times with intervals, and learn from each run that ends."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from ..interfaces.run_times import Basis, RunTimeForecast
from .conformal import AdaptiveConformal
from .past_runs import PastRun, PlannedRun
from .run_history import Columns, RunHistory
from .run_time_model import RunTimeModel
from .survival import survival_quantile

_SAME_PARAMETERS = (Basis.OWN_PARAMETERS, Basis.PARAMETERS)
_COUNTED = 2
"""Number of the newest runs whose mean the simple predictor expects."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A forecast, with what is needed to learn from its outcome.

    Attributes:
        low, high: logarithms of the interval before it was widened.
    """

    forecast: RunTimeForecast
    low: float
    high: float


class RunTimePredictor:
    """Predicts from the runs that ended before.

    With a model, its quantiles are used. Without one, the mean of the two newest of the most alike
    runs (Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than
    user runtime estimates", IEEE TPDS 18(6), 2007), with the median of the product-limit estimator
    where they were stopped early. New parameters of a known program are predicted by its scaling
    law where it has one, together with the model where there is one.
    """

    def __init__(self, model: RunTimeModel | None = None) -> None:
        self.model = model
        self.history = RunHistory()
        self._conformal = AdaptiveConformal()

    def predict(self, plan: PlannedRun, *, running: int = 0) -> Prediction:
        """Return the forecast of a run.

        Args:
            running: how many runs are going on.
        """
        found = next(self.history.alike(plan), None)
        if found is None or found[0] is Basis.ALL:
            unknown = RunTimeForecast(seconds=plan.limit, low=0.0, high=plan.limit, basis=None)
            return Prediction(unknown, -math.inf, math.inf)
        basis, alike = found
        low, typical, high = self._quantiles(plan, basis, running)
        widening = self._conformal.widening
        # A narrowing never crosses the middle of the interval.
        widening = max(widening, (low - high) / 2)
        forecast = RunTimeForecast(
            seconds=min(plan.limit, _exp(typical)),
            low=min(plan.limit, _exp(low - widening)),
            high=min(plan.limit, _exp(high + widening)),
            basis=basis,
            runs=len(alike.logs),
        )
        return Prediction(forecast, low, high)

    def _quantiles(
        self, plan: PlannedRun, basis: Basis, running: int
    ) -> tuple[float, float, float]:
        """Return the logarithms of low, typical and high seconds, before intervals are widened."""
        law = None if basis in _SAME_PARAMETERS else self.history.law(plan.program)
        scaled = None if law is None else law.seconds(plan)
        if self.model is None:
            same = math.log(self._simple(plan) if scaled is None else scaled)
            return same, same, same
        features = self.history.features(plan, self.model.columns, running)
        low, typical, high = self.model.evaluate(features)
        if law is None or scaled is None:
            return low, typical, high
        # The mean of the quantiles of both, whose errors have different causes.
        middle = math.log(scaled)
        return (
            (low + middle - law.half_width) / 2,
            (typical + middle) / 2,
            (high + middle + law.half_width) / 2,
        )

    def _simple(self, plan: PlannedRun) -> float:
        for _, alike in self.history.alike(plan):
            newest = list(alike.seconds)[-_COUNTED:]
            if not any(censored for _, censored in newest):
                return fmean(seconds for seconds, _ in newest)
            middle = survival_quantile(alike.seconds, 0.5)
            if math.isfinite(middle):
                return middle
        # Everything was stopped early: what is imputed.
        return math.exp(next(self.history.alike(plan))[1].logs[-1])

    def observe(self, run: PastRun, prediction: Prediction | None = None) -> None:
        """Learn from a run that has ended.

        Args:
            prediction: what was predicted of it. A censored run says nothing on its interval,
                unless it ran for longer than the interval allows.
        """
        if prediction is not None and prediction.forecast.basis is not None:
            log = math.log(run.seconds)
            forecast = prediction.forecast
            above = run.seconds > forecast.high
            if not run.censored or above:
                missed = above or run.seconds < forecast.low
                score = max(prediction.low - log, log - prediction.high)
                self._conformal.observe(score, missed=missed)
        self.history.add(run)


def replay(
    predictor: RunTimePredictor, runs: Iterable[PastRun], *, since: float = -math.inf
) -> Iterator[tuple[PastRun, Prediction]]:
    """Let a predictor live through a history: yield what it predicts of each run.

    At the submission of a run it knows the runs that ended before; all of them at the end. Runs
    submitted before ``since`` are only learned from, without a prediction.
    """
    open_runs: list[tuple[float, int, PastRun, Prediction | None]] = []
    for number, run in enumerate(sorted(runs, key=lambda run: run.plan.at)):
        while open_runs and open_runs[0][0] <= run.plan.at:
            _, _, ended, prediction = heapq.heappop(open_runs)
            predictor.observe(ended, prediction)
        predicted = None
        if run.plan.at >= since:
            predicted = predictor.predict(run.plan, running=len(open_runs))
            yield run, predicted
        heapq.heappush(open_runs, (max(run.ended_at, run.plan.at), number, run, predicted))
    for _, _, ended, prediction in sorted(open_runs, key=lambda each: each[:2]):
        predictor.observe(ended, prediction)


def training_rows(runs: Iterable[PastRun], columns: Columns) -> Iterator[tuple[list[float], float]]:
    """Yield features and the logarithm of the seconds of each run, with what was known then.

    For a censored run these are its imputed seconds, from the history at its end.
    """
    history = RunHistory()
    open_runs: list[tuple[float, int, PastRun, list[float]]] = []

    def end(run: PastRun, features: list[float]) -> tuple[list[float], float]:
        likely = history.add(run)
        return features, math.log(likely)

    for number, run in enumerate(sorted(runs, key=lambda run: run.plan.at)):
        while open_runs and open_runs[0][0] <= run.plan.at:
            yield end(*heapq.heappop(open_runs)[2:])
        features = history.features(run.plan, columns, len(open_runs))
        heapq.heappush(open_runs, (max(run.ended_at, run.plan.at), number, run, features))
    while open_runs:
        yield end(*heapq.heappop(open_runs)[2:])


def _exp(log: float) -> float:
    """Return seconds, to the millisecond."""
    return round(math.exp(min(log, 700.0)), 3)
