"""Scores by a model of PyTorch in Spark's processes: equal to those in this process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import carrel
from carrel.extensions.spark.columns import pictures
from carrel.hub.errors import InvalidInput

from ...pyspark_packages import need_spark
from ...torch_packages import PACKAGES as TORCH

pytestmark = pytest.mark.slow

ROWS = 300


@pytest.fixture(scope="module")
def torch() -> Any:
    need_spark()
    TORCH.need()
    TORCH.available("torch")
    import torch  # noqa: PLC0415 # not always installed

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return torch


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    values = draw.normal(size=(ROWS, 3))
    frame = pd.DataFrame(values, columns=["a", "b", "c"])
    return frame.assign(key=range(ROWS), all=[list(each) for each in values])


def encoded(draw: np.random.Generator, height: int, width: int, kind: str = "PNG") -> bytes:
    pixels = draw.integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def collected(frame: Any, output: str = "scores") -> np.ndarray[Any, Any]:
    """Return the scores in the order of the keys."""
    found = frame.toPandas().sort_values("key")
    assert list(found.key) == list(range(len(found)))
    return np.stack(found[output])


@pytest.mark.parametrize("inputs", [["a", "b", "c"], "all"])
def test_scores_of_rows_equal_local_ones(
    session: Any, torch: Any, rows: pd.DataFrame, inputs: Any
) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
    )
    assert model.training
    frame = session.createDataFrame(rows).repartition(4)
    scored = carrel.spark_scores(frame, model, inputs, batch=32)
    read = {inputs} if isinstance(inputs, str) else set(inputs)
    assert scored.columns == [name for name in [*rows.columns, "scores"] if name not in read]
    found = collected(scored)
    assert model.training, "the model itself is as it was"
    with torch.inference_mode():
        values = torch.tensor(rows[["a", "b", "c"]].to_numpy(), dtype=torch.float32)
        expected = model.eval()(values).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert (found.argmax(1) == expected.argmax(1)).all()


def test_vectors_of_sparkml_are_read_and_its_classifier_learns_from_scores(
    session: Any, torch: Any, rows: pd.DataFrame
) -> None:
    from pyspark.ml.classification import LogisticRegression  # noqa: PLC0415
    from pyspark.ml.feature import VectorAssembler  # noqa: PLC0415
    from pyspark.ml.functions import array_to_vector  # noqa: PLC0415

    labelled = rows.assign(label=(rows.a + rows.b > 0).astype(float))
    frame = session.createDataFrame(labelled.drop(columns="all"))
    assembled = VectorAssembler(inputCols=["a", "b", "c"], outputCol="vector").transform(frame)
    model = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh())
    scored = carrel.spark_scores(assembled, model, "vector", keep=["key", "label"])
    features = scored.withColumn("features", array_to_vector("scores")).cache()
    fitted = LogisticRegression(maxIter=50).fit(features)
    found = fitted.transform(features).select("label", "prediction").toPandas()
    assert (found.label == found.prediction).mean() > 0.95


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_scores_of_pictures_equal_local_ones(session: Any, torch: Any, kind: str) -> None:
    draw = np.random.default_rng(1)
    contents = [encoded(draw, 20 + each % 3, 30, kind) for each in range(50)]
    frame = session.createDataFrame(
        [(key, bytearray(content)) for key, content in enumerate(contents)],
        "key int, content binary",
    )
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten()
    )
    scored = carrel.spark_scores(frame.repartition(3), model, "content", size=(16, 24), output="f")
    with torch.inference_mode():
        expected = model(torch.from_numpy(pictures(contents, (16, 24)))).numpy()
    np.testing.assert_allclose(collected(scored, "f"), expected, rtol=0, atol=1e-6)


def test_scores_of_files_equal_those_of_their_content(
    session: Any, torch: Any, tmp_path: Path
) -> None:
    draw = np.random.default_rng(4)
    for number in range(40):
        (tmp_path / f"{number:02} ä%20#b.png").write_bytes(encoded(draw, 20, 30))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten())
    files = session.read.format("binaryFile").load(str(tmp_path))

    def scores(frame: Any, inputs: str) -> Any:
        scored = carrel.spark_scores(frame, model, inputs, size=(8, 12), keep=["path"])
        return np.stack(scored.toPandas().sort_values("path")["scores"])

    expected = scores(files, "content")
    assert expected.shape == (40, 4 * 6 * 10)
    np.testing.assert_array_equal(scores(files.select("path"), "path"), expected)
    paths = session.createDataFrame([(str(each),) for each in tmp_path.iterdir()], "path string")
    np.testing.assert_array_equal(scores(paths, "path"), expected)


def test_each_process_loads_the_model_once(session: Any, torch: Any, tmp_path: Path) -> None:
    log = tmp_path / "loads"

    class Counted(torch.nn.Module):  # type: ignore[misc] # a class such as one of a notebook
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def __setstate__(self, state: dict[str, Any]) -> None:
            import os  # noqa: PLC0415 # where it is unpickled

            super().__setstate__(state)
            with log.open("a") as file:
                file.write(f"{os.getpid()}\n")

        def forward(self, values: Any) -> Any:
            return values * self.scale

    tasks = 16
    frame = session.createDataFrame([(key, float(key)) for key in range(64)], "key int, a double")
    scored = carrel.spark_scores(frame.repartition(tasks), Counted(), ["a"], batch=2)
    for _ in range(2):
        assert collected(scored)[:, 0].tolist() == [2.0 * key for key in range(64)]
    loads = log.read_text().split()
    # Those of other tests, which had several functions in one stage, take tasks too.
    assert len(loads) == len(set(loads)) < tasks


def test_a_model_may_write_to_its_input(session: Any, torch: Any) -> None:
    class Doubled(torch.nn.Linear):  # type: ignore[misc]
        def forward(self, values: Any) -> Any:
            return super().forward(values.mul_(2))

    # Of the type of the columns, so that no conversion copies them.
    model = Doubled(1, 1, dtype=torch.float64)
    frame = session.createDataFrame([(1.0,), (3.0,)], "a double").coalesce(1)
    found = carrel.spark_scores(frame, model, ["a"], keep=["a"]).toPandas()
    assert found.a.tolist() == [1.0, 3.0], "the kept column is as it was"
    with torch.inference_mode():
        expected = model(torch.tensor([[1.0], [3.0]], dtype=torch.float64)).numpy()
    np.testing.assert_array_equal(np.stack(found.scores), expected)


def test_kept_columns_may_include_the_inputs(session: Any, torch: Any) -> None:
    frame = session.createDataFrame([(0, 1.5, "x")], "key int, a double, `a name` string")
    model = torch.nn.Linear(1, 1)
    scored = carrel.spark_scores(frame, model, ["a"], keep=["a name", "a", "key"])
    assert scored.columns == ["a name", "a", "key", "scores"]
    assert scored.collect()[0][:3] == ("x", 1.5, 0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"inputs": "nothing"}, "The frame has no column 'nothing'. One of its columns: a, t, m."),
        ({"inputs": []}, "No input column is named. At least one column."),
        ({"inputs": ["a", "t"]}, "The model cannot read texts. Columns of numbers, arrays"),
        ({"inputs": "m"}, "The column m is map<string,int>."),
        ({"inputs": ["a"], "keep": ["b"]}, "The frame has no column 'b'."),
        ({"inputs": ["a"], "output": "t"}, "The frame has a column 't' already."),
        ({"inputs": ["a"], "batch": 0}, "batch is 0. A whole number from 1."),
    ],
)
def test_wrong_columns_are_refused(
    session: Any, torch: Any, given: dict[str, Any], sentence: str
) -> None:
    frame = session.createDataFrame([(1.0, "x", {"a": 1})], "a double, t string, m map<string,int>")
    with pytest.raises(InvalidInput) as refused:
        carrel.spark_scores(frame, torch.nn.Linear(1, 1), **given)
    assert str(refused.value).startswith(sentence)


def test_models_without_weights_are_refused(session: Any, torch: Any) -> None:
    frame = session.createDataFrame([(1.0,)], "a double")
    with torch.device("meta"):
        empty = torch.nn.Linear(1, 1)
    for model, sentence in (
        (torch.nn.ReLU(), "The model ReLU has no weights: its state_dict is empty."),
        (torch.nn.LazyLinear(1), "The model LazyLinear has weights without values."),
        (empty, "The model Linear has weights without values (device meta)."),
        (torch.nn.Linear, "Linear is a class."),
        (len, "builtin_function_or_method is no model of PyTorch."),
    ):
        with pytest.raises(InvalidInput) as refused:
            carrel.spark_scores(frame, model, ["a"])
        assert str(refused.value).startswith(sentence)


def test_bad_rows_end_with_a_sentence(session: Any, torch: Any) -> None:
    from pyspark.errors import PythonException  # noqa: PLC0415

    draw = np.random.default_rng(2)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 1, 3), torch.nn.Flatten())
    small, large = encoded(draw, 8, 8), encoded(draw, 9, 8)
    for contents, sentence in (
        ([b"no picture"], "Picture 0 of a batch cannot be read"),
        ([small, small[:60]], "Picture 1 of a batch cannot be read"),
        ([small, None], "Picture 1 of a batch cannot be read"),
        ([small, large], "The pictures have several sizes, such as (8, 8) and (9, 8)."),
    ):
        frame = session.createDataFrame([(each,) for each in contents], "content binary").coalesce(
            1
        )
        with pytest.raises(PythonException) as failed:
            carrel.spark_scores(frame, model, "content").collect()
        assert sentence in str(failed.value)
    for path, sentence in (
        ("nothing.png", "A picture cannot be read: [Errno 2] No such file"),
        (None, "A row has no path of a picture."),
    ):
        frame = session.createDataFrame([(path,)], "path string")
        with pytest.raises(PythonException) as failed:
            carrel.spark_scores(frame, model, "path").collect()
        assert sentence in str(failed.value)
    for rows, kind, sentence in (
        ([(None,)], "double", "The column a has rows without a value."),
        ([([1.0],), ([1.0, 2.0],)], "array<double>", "arrays of 1 and of 2 numbers"),
    ):
        frame = session.createDataFrame(rows, f"a {kind}").coalesce(1)
        inputs: Any = "a" if kind != "double" else ["a"]
        with pytest.raises(PythonException) as failed:
            carrel.spark_scores(frame, torch.nn.Linear(1, 1), inputs).collect()
        assert sentence in str(failed.value)


def test_a_model_that_returns_other_rows_ends_with_a_sentence(session: Any, torch: Any) -> None:
    from pyspark.errors import PythonException  # noqa: PLC0415

    class Mean(torch.nn.Linear):  # type: ignore[misc]
        def forward(self, values: Any) -> Any:
            return super().forward(values).mean()

    frame = session.createDataFrame([(1.0,), (2.0,)], "a double").coalesce(1)
    with pytest.raises(PythonException, match="for 2 rows"):
        carrel.spark_scores(frame, Mean(1, 1), ["a"]).collect()
