"""Wrap estimators of scikit-learn as stages of SparkML: ``carrel.spark_estimator`` and
``carrel.spark_model``.

For each estimator a class is generated, with a ``Param`` for each of its parameters, so that
pipelines, ``ParamGridBuilder`` and ``CrossValidator`` of SparkML work with it. Fitting happens in
the notebook's process; predictions are made in Spark's Python processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ...hub.errors import InvalidInput
from .columns import METHODS, InputColumns, StageColumns, types_of


def spark_estimator(
    estimator: Any,
    *,
    features: str | Sequence[str],
    label: str = "",
    prediction: str = "prediction",
    probability: str = "",
) -> Any:
    """Return an estimator of SparkML that fits a copy of one of scikit-learn.

    >>> forest = carrel.spark_estimator(RandomForestClassifier(), features=["a", "b"], label="kind")
    >>> fitted = forest.fit(frame)          # columns are fetched: they must fit into memory
    >>> fitted.transform(frame).select("prediction")

    ``forest.n_estimators`` is a ``Param``; a name that SparkML has already gets an underscore
    (``copy_``). ``fitted.estimator`` is the fitted one of scikit-learn.

    Args:
        features: one column of numbers, arrays, vectors or texts by its name, or a list of columns,
            which the estimator gets as a pandas frame.
        label: the column to learn; omit it for one that learns without.
        prediction: name of the new column; numbers are doubles, as SparkML's evaluators expect.
        probability: name of a second new column with ``predict_proba``.

    Raises:
        InvalidInput: it is no estimator of scikit-learn.
    """
    _check_estimator(estimator)
    columns = _stage_columns(features, label, prediction, probability)
    _check_methods(estimator, columns)
    return _generated_estimator(estimator)(estimator, columns)


def spark_model(
    fitted: Any,
    *,
    features: str | Sequence[str],
    prediction: str = "prediction",
    probability: str = "",
) -> Any:
    """Return a transformer of SparkML that predicts by a fitted estimator of scikit-learn.

    Args:
        features: as in ``spark_estimator``; a list must have the columns it was fitted with.
        prediction: name of the new column, as in ``spark_estimator``.
        probability: name of a second new column with ``predict_proba``.

    Raises:
        InvalidInput: it is no estimator of scikit-learn, or it is not fitted.
    """
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415 # not needed for the client
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415 # the same

    _check_estimator(fitted)
    columns = _stage_columns(features, "", prediction, probability)
    try:
        check_is_fitted(fitted)
    except NotFittedError as error:
        raise InvalidInput(
            f"The estimator {type(fitted).__name__} is not fitted.",
            accepted="Call its fit first, or carrel.spark_estimator(…).fit(frame).",
        ) from error
    _check_methods(fitted, columns)
    names = [str(each) for each in getattr(fitted, "feature_names_in_", ())]
    if names and not isinstance(columns.features, str) and list(columns.features) != names:
        raise InvalidInput(
            f"The estimator was fitted with the columns {', '.join(names)}.",
            accepted="The same columns in the same order.",
        )
    return _model(fitted, columns)


def _stage_columns(
    features: str | Sequence[str], label: str, prediction: str, probability: str
) -> StageColumns:
    if not prediction or prediction == probability:
        raise InvalidInput(
            "The new columns need names of their own.", accepted="Two different names."
        )
    listed = features if isinstance(features, str) else tuple(features)
    return StageColumns(
        features=listed, label=label, prediction=prediction, probability=probability
    )


def _check_estimator(estimator: Any) -> None:
    missing = [name for name in ("pyspark", "sklearn") if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"A stage of SparkML needs {' and '.join(missing)}. Install with: pip install "
            "'carrel[spark]', or use the image spark.",
            name=missing[0],
        )
    if isinstance(estimator, type):
        raise InvalidInput(
            f"{estimator.__name__} is a class.", accepted="An estimator: call the class."
        )
    if not hasattr(estimator, "get_params") or not hasattr(estimator, "fit"):
        raise InvalidInput(
            f"{type(estimator).__name__} is no estimator of scikit-learn.",
            accepted="An object with fit, get_params and predict or transform.",
        )


def _check_methods(estimator: Any, columns: StageColumns) -> None:
    name = type(estimator).__name__
    if not any(hasattr(estimator, each) for each in METHODS):
        raise InvalidInput(
            f"{name} has neither predict nor transform for new rows.",
            accepted="An estimator that has one of them.",
        )
    if columns.probability and not hasattr(estimator, "predict_proba"):
        raise InvalidInput(f"{name} has no predict_proba.", accepted="Omit probability.")


def _generated_estimator(estimator: Any) -> type:
    """Generate the SparkML class for the parameters of an estimator."""
    from pyspark.ml import Estimator  # noqa: PLC0415 # not needed for the client
    from pyspark.ml.param import Param, Params  # noqa: PLC0415 # the same

    taken = set(dir(Estimator))
    names = {
        (f"{name}_" if name in taken else name): name for name in estimator.get_params(deep=True)
    }

    def __init__(self: Any, estimator: Any, columns: StageColumns) -> None:
        Estimator.__init__(self)
        self.estimator, self.columns = estimator, columns

    def _fit(self: Any, dataset: Any) -> Any:
        chosen = {names[param.name]: value for param, value in self._paramMap.items()}
        return _model(_fitted(self.estimator, self.columns, chosen, dataset), self.columns)

    def __repr__(self: Any) -> str:
        return f"{type(self).__name__}({self.estimator!r})"

    title = type(estimator).__name__
    return type(
        f"Spark{title}",
        (Estimator,),
        {
            "__doc__": f"{title} of scikit-learn as an estimator of SparkML.",
            "__init__": __init__,
            "__repr__": __repr__,
            "_fit": _fit,
            **{
                given: Param(Params._dummy(), given, f"{name} of {title}")
                for given, name in names.items()
            },
        },
    )


def _model(fitted: Any, columns: StageColumns) -> Any:
    from .sklearn_model import SklearnModel  # noqa: PLC0415 # it imports pyspark

    return SklearnModel(fitted, columns)


def _fitted(estimator: Any, columns: StageColumns, chosen: Mapping[str, Any], frame: Any) -> Any:
    """Return a copy of the estimator, fitted with the rows of a frame."""
    from sklearn import clone  # noqa: PLC0415 # not needed for the client

    inputs = InputColumns.of(frame, columns.features)
    labels = (columns.label,) if columns.label else ()
    types_of(frame, labels)
    columns.check_new(frame)
    fetched = [*inputs.expressions(), *(f"`{name}`" for name in labels)]
    rows = frame.select(*fetched).toPandas()
    if not len(rows):
        raise InvalidInput("The frame has no rows.", accepted="At least one to learn from.")
    made = clone(estimator).set_params(**chosen)
    values = inputs.values(rows)
    if not labels:
        return made.fit(values)
    known = rows[columns.label]
    if known.isna().any():
        raise InvalidInput(
            f"The column {columns.label} has rows without a value.", accepted="Drop them."
        )
    return made.fit(values, known.to_numpy())
