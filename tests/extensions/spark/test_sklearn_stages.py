"""Estimators of scikit-learn as stages of SparkML: predictions equal those in this process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import carrel
from carrel.hub.errors import InvalidInput

from ...pyspark_packages import need_spark

pytestmark = pytest.mark.slow

NAMES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def _spark() -> None:
    need_spark()


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    values = draw.normal(size=(400, 3))
    frame = pd.DataFrame(values, columns=NAMES)
    positive = frame.a + 0.3 * draw.normal(size=400) > 0
    return frame.assign(
        key=range(400),
        all=[list(each) for each in values],
        label=positive.astype(int),
        kind=np.where(positive, "fox", "deer"),
        place=np.where(frame.b > 0, "wood", "field"),
        size=2 * frame.a - frame.b,
    )


@pytest.fixture(scope="module")
def frame(session: Any, rows: pd.DataFrame) -> Any:
    return session.createDataFrame(rows)


def predictions(frame: Any, name: str = "prediction") -> Any:
    found = frame.toPandas().sort_values("key")
    assert len(found) == 400
    return found[name].to_numpy()


@pytest.mark.parametrize(
    ("estimator", "label"),
    [
        (LogisticRegression(), "label"),
        (LogisticRegression(), "kind"),
        (RandomForestClassifier(n_estimators=10, random_state=0), "kind"),
        (KNeighborsClassifier(), "label"),
        (LinearRegression(), "size"),
        (make_pipeline(StandardScaler(), LinearSVC(random_state=0)), "kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.parametrize("features", [NAMES, "all"], ids=["columns", "array"])
def test_predictions_equal_those_of_a_local_fit(
    frame: Any, rows: pd.DataFrame, estimator: Any, label: str, features: Any
) -> None:
    stage = carrel.spark_estimator(estimator, features=features, label=label)
    fitted = stage.fit(frame)
    values = rows[NAMES] if features is NAMES else np.stack(rows["all"])
    expected = clone(estimator).fit(values, rows[label].to_numpy()).predict(values)
    found = predictions(fitted.transform(frame.repartition(5)))
    if label == "size":
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    else:
        assert list(found) == list(expected)
    assert not hasattr(estimator, "n_features_in_"), "the user's own stays unfitted"


def test_fitted_estimators_predict_as_they_do_here(frame: Any, rows: pd.DataFrame) -> None:
    fitted = LogisticRegression().fit(rows[NAMES].to_numpy(), rows.kind.to_numpy())
    model = carrel.spark_model(fitted, features=NAMES, probability="p")
    found = model.transform(frame.repartition(3))
    assert found.columns == [*frame.columns, "prediction", "p"]
    expected = fitted.predict_proba(rows[NAMES].to_numpy())
    np.testing.assert_allclose(np.stack(predictions(found, "p")), expected, rtol=0, atol=1e-12)
    assert list(predictions(found)) == list(fitted.predict(rows[NAMES].to_numpy()))


def test_texts_and_columns_of_several_kinds_are_read(frame: Any, rows: pd.DataFrame) -> None:
    words = make_pipeline(TfidfVectorizer(), LogisticRegression())
    by_words = carrel.spark_estimator(words, features="place", label="kind").fit(frame)
    expected = words.fit(rows.place, rows.kind).predict(rows.place)
    assert list(predictions(by_words.transform(frame))) == list(expected)

    mixed = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["place"]), remainder="passthrough"),
        LogisticRegression(),
    )
    columns = ["a", "place"]
    by_columns = carrel.spark_estimator(mixed, features=columns, label="label").fit(frame)
    expected = mixed.fit(rows[columns], rows.label).predict(rows[columns])
    assert list(predictions(by_columns.transform(frame))) == list(expected)


def test_stages_work_in_pipelines_of_sparkml(frame: Any, rows: pd.DataFrame) -> None:
    from pyspark.ml import Pipeline  # noqa: PLC0415

    scaled = carrel.spark_estimator(PCA(2, random_state=0), features="all", prediction="parts")
    labels = carrel.spark_estimator(LogisticRegression(), features="parts", label="label")
    found = Pipeline(stages=[scaled, labels]).fit(frame).transform(frame)
    values = np.stack(rows["all"])
    local = make_pipeline(PCA(2, random_state=0), LogisticRegression())
    assert list(predictions(found)) == list(local.fit(values, rows.label).predict(values))
    np.testing.assert_allclose(
        np.stack(predictions(found, "parts")), local[0].transform(values), rtol=0, atol=1e-9
    )


def test_parameters_are_searched_by_sparkml(frame: Any) -> None:
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator  # noqa: PLC0415
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder  # noqa: PLC0415

    stage = carrel.spark_estimator(LogisticRegression(), features=NAMES, label="label")
    grid = ParamGridBuilder().addGrid(stage.C, [1e-6, 1.0]).build()
    evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
    search = CrossValidator(
        estimator=stage, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=0
    )
    best = search.fit(frame).bestModel
    assert best.estimator.C == 1.0
    assert stage.estimator.C == LogisticRegression().C


def test_a_parameter_with_a_name_of_sparkml_gets_an_underscore(frame: Any) -> None:
    stage = carrel.spark_estimator(StandardScaler(), features="all", prediction="scaled")
    assert stage.copy_.doc == "copy of StandardScaler"
    assert repr(stage) == "StandardScaler()".join(["SparkStandardScaler(", ")"])
    fitted = stage.fit(frame, {stage.with_mean: False})
    assert fitted.estimator.with_mean is False


def test_estimators_that_cannot_predict_are_refused() -> None:
    class Odd:
        pass

    for estimator, sentence in (
        (LogisticRegression, "LogisticRegression is a class. An estimator: call the class."),
        (Odd(), "Odd is no estimator of scikit-learn."),
        (DBSCAN(), "DBSCAN has neither predict nor transform for new rows."),
    ):
        with pytest.raises(InvalidInput) as refused:
            carrel.spark_estimator(estimator, features=NAMES, label="label")
        assert str(refused.value).startswith(sentence)
    with pytest.raises(InvalidInput, match="LinearSVC has no predict_proba"):
        carrel.spark_estimator(LinearSVC(), features=NAMES, label="label", probability="p")


def test_an_unfitted_estimator_and_other_columns_are_refused(rows: pd.DataFrame) -> None:
    with pytest.raises(InvalidInput) as refused:
        carrel.spark_model(LogisticRegression(), features=NAMES)
    assert str(refused.value) == (
        "The estimator LogisticRegression is not fitted. Call its fit first, or "
        "carrel.spark_estimator(…).fit(frame)."
    )
    fitted = LogisticRegression().fit(rows[NAMES], rows.label)
    with pytest.raises(InvalidInput, match="fitted with the columns a, b, c"):
        carrel.spark_model(fitted, features=["b", "a", "c"])
    with pytest.raises(InvalidInput, match="need names of their own"):
        carrel.spark_model(fitted, features=NAMES, prediction="p", probability="p")


def test_wrong_columns_of_a_frame_are_refused(session: Any, frame: Any) -> None:
    def stage(**given: Any) -> Any:
        return carrel.spark_estimator(
            LogisticRegression(), **{"features": NAMES, "label": "label", **given}
        )

    for made, sentence in (
        (stage(features=["a", "zz"]), "The frame has no column 'zz'."),
        (stage(label="zz"), "The frame has no column 'zz'."),
        (stage(features=["a", "all"]), "The column all is array<double>."),
        (stage(prediction="kind"), "The frame has a column 'kind' already."),
    ):
        with pytest.raises(InvalidInput) as refused:
            made.fit(frame)
        assert str(refused.value).startswith(sentence)
    with pytest.raises(InvalidInput, match="The frame has no rows"):
        stage().fit(frame.limit(0))
    kinds = "a double, b double, c double, label int"
    for row, sentence in (
        ((1.0, None, 2.0, 1), "The column b has rows without a value."),
        ((1.0, 1.0, 2.0, None), "The column label has rows without a value."),
    ):
        with pytest.raises(InvalidInput) as refused:
            stage().fit(session.createDataFrame([row], kinds))
        assert str(refused.value).startswith(sentence)
