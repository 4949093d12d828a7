"""Fit the model of run times with scikit-learn (extra ``carrel[insight]``)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import Unavailable
from .boosted_trees import LEAF, BoostedTrees, RegressionTree
from .past_runs import PastRun, usable
from .predictor import training_rows
from .run_history import Columns, most_common
from .run_time_model import RunTimeModel

FEWEST = 200
"""Number of runs from which a model is better than the simple predictor."""
_MOST = 100_000
"""Number of newest runs that a model is fitted to."""
_NAMES = 12
"""Number of parameters, and of sizes, that are features."""
_TYPICAL = 0.42
"""The quantile with a small relative error: of a log-normal variable with the spread s that is the
quantile of the normal distribution at -s, and predicted runs spread by about a fifth."""
_CHECKED = 100
_TOLERANCE = 1e-6


def train(runs: Iterable[PastRun]) -> RunTimeModel | None:
    """Return a model of these runs, or None where they are too few.

    Low and high are the quantiles of 5 and 95 %, the typical value is a little below the median.

    Raises:
        Unavailable: scikit-learn is missing, or is a version whose trees are not understood.
    """
    past = sorted(usable(runs), key=lambda run: run.ended_at)[-_MOST:]
    if len(past) < FEWEST:
        return None
    columns = _columns(past)
    rows = list(training_rows(past, columns))
    fitted = _Fit([features for features, _ in rows], [log for _, log in rows])
    return RunTimeModel(
        columns=columns,
        trained_until=past[-1].ended_at,
        runs=len(past),
        typical=fitted.quantile(_TYPICAL),
        low=fitted.quantile(0.05),
        high=fitted.quantile(0.95),
    )


def _columns(past: Sequence[PastRun]) -> Columns:
    numeric: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for run in past:
        numeric.update(
            name for name, value in run.plan.parameters.items() if isinstance(value, int | float)
        )
        sizes.update(run.plan.sizes)
    return Columns(parameters=most_common(numeric, _NAMES), sizes=most_common(sizes, _NAMES))


class _Fit:
    """Fits quantiles to one table."""

    def __init__(self, features: Sequence[Sequence[float]], logs: Sequence[float]) -> None:
        try:
            import numpy as np  # noqa: PLC0415  # an extra
            from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415
            from threadpoolctl import threadpool_limits  # noqa: PLC0415
        except ImportError as error:
            raise Unavailable(
                "The model of run times needs scikit-learn, which is not installed.",
                accepted="Install carrel[insight].",
            ) from error
        self._make = HistGradientBoostingRegressor
        self._limits = threadpool_limits
        table = np.asarray(features, dtype=float)
        # scikit-learn refuses a column without any value.
        table[:, np.isnan(table).all(axis=0)] = 0.0
        self._features = table
        self._logs = np.asarray(logs, dtype=float)

    def quantile(self, share: float) -> BoostedTrees:
        estimator = self._make(
            loss="quantile",
            quantile=share,
            max_iter=100,
            learning_rate=0.1,
            max_leaf_nodes=20,
            min_samples_leaf=20,
            early_stopping=False,
            random_state=0,
        )
        # Several threads wait for each other without rest, which costs minutes on a busy machine.
        with self._limits(limits=1):
            fitted = estimator.fit(self._features, self._logs)
        trees = _exported(fitted)
        self._check(fitted, trees)
        return trees

    def _check(self, fitted: Any, trees: BoostedTrees) -> None:
        """Raise Unavailable unless the exported trees say what the fitted ones say."""
        some = self._features[:: max(1, len(self._features) // _CHECKED)]
        pairs = zip(fitted.predict(some), some.tolist(), strict=True)
        if any(abs(value - trees.evaluate(row)) > _TOLERANCE for value, row in pairs):
            raise Unavailable(
                "The trees of this version of scikit-learn are not understood.",
                accepted="The version that requirements/up.txt names.",
            )


def _exported(fitted: Any) -> BoostedTrees:
    """Return the trees of a fitted estimator; scikit-learn has no public form of them."""
    try:
        trees = [_tree(predictor.nodes) for (predictor,) in fitted._predictors]
        return BoostedTrees(base=float(fitted._baseline_prediction.item()), trees=trees)
    except (AttributeError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            "The trees of this version of scikit-learn are not understood.",
            accepted="The version that requirements/up.txt names.",
        ) from error


def _tree(nodes: Any) -> RegressionTree:
    leaf = nodes["is_leaf"].astype(bool)
    feature, threshold = nodes["feature_idx"].astype(int), nodes["num_threshold"].astype(float)
    feature[leaf], threshold[leaf] = LEAF, 0.0
    # A split between what is known and what is not.
    threshold[threshold == math.inf] = 1e300
    return RegressionTree(
        feature=feature.tolist(),
        threshold=threshold.tolist(),
        left=nodes["left"].astype(int).tolist(),
        right=nodes["right"].astype(int).tolist(),
        unknown_left=nodes["missing_go_to_left"].astype(bool).tolist(),
        value=nodes["value"].astype(float).tolist(),
    )
