"""A fitted estimator of scikit-learn as a transformer of SparkML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pyspark.ml import Model
from pyspark.sql.functions import pandas_udf, struct

from ...hub.errors import InvalidInput
from .columns import METHODS, InputColumns, StageColumns
from .worker_models import BroadcastModel, broadcast


class SklearnModel(Model):  # type: ignore[misc] # pyspark is not always installed
    """A fitted estimator of scikit-learn as a transformer of SparkML."""

    def __init__(self, estimator: Any, columns: StageColumns) -> None:
        super().__init__()
        self.estimator, self.columns = estimator, columns

    def __repr__(self) -> str:
        return f"SklearnModel({self.estimator!r})"

    def _transform(self, dataset: Any) -> Any:
        return _with_predictions(self.estimator, self.columns, dataset)


def _with_predictions(estimator: Any, columns: StageColumns, frame: Any) -> Any:
    """Return the frame with the new columns."""
    inputs = InputColumns.of(frame, columns.features)
    columns.check_new(frame)
    predictor = _RowPredictor(
        columns=inputs,
        method=next(name for name in METHODS if hasattr(estimator, name)),
        named=hasattr(estimator, "feature_names_in_"),
        model=broadcast(frame.sparkSession, estimator),
    )
    asked = [(columns.prediction, predictor, _type_of_predictions(estimator, predictor.method))]
    if columns.probability:
        probable = replace(predictor, method="predict_proba")
        asked.append((columns.probability, probable, "array<double>"))
    features = struct(*inputs.expressions())
    for name, each, kind in asked:
        function = pandas_udf(each.predictions, kind)
        frame = frame.withColumn(name, function(features))
    return frame


def _type_of_predictions(estimator: Any, method: str) -> str:
    if method == "transform":
        return "array<double>"
    classes = getattr(estimator, "classes_", np.zeros(1))
    if isinstance(classes, list):
        raise InvalidInput(
            "The estimator predicts several values a row.", accepted="One with one value a row."
        )
    if np.asarray(classes).dtype.kind in "biuf":
        return "double"
    if all(isinstance(each, str) for each in classes):
        return "string"
    raise InvalidInput(
        f"The classes {', '.join(map(str, classes))} are neither numbers nor texts.",
        accepted="Labels that are numbers or texts.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowPredictor:
    """What each Python process of Spark does with its rows.

    Attributes:
        method: of the estimator.
        named: whether the estimator knows its columns by name.
    """

    columns: InputColumns
    method: str
    named: bool
    model: BroadcastModel

    def predictions(self, parts: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
        """Yield a result for each row, part by part."""
        method = getattr(self.model.load(), self.method)
        for part in parts:
            if not len(part):
                yield pd.Series([], dtype=object)
                continue
            values = self.columns.values(part)
            if self.columns.kind == "columns" and not self.named:
                values = values.to_numpy()
            yield pd.Series(self._rows(method(values), len(part)))

    def _rows(self, found: Any, count: int) -> list[Any]:
        values = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
        single = self.method == "predict"
        if len(values) != count or values.ndim != (1 if single else 2):
            raise InvalidInput(
                f"{self.method} returned an array of the shape {values.shape} for {count} rows.",
                accepted="One value a row from predict, one array a row from others.",
            )
        if not single:
            return list(values.astype(float))
        return (
            [str(each) for each in values]
            if values.dtype.kind in "OU"
            else list(values.astype(float))
        )
