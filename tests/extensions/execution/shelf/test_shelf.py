"""A shelf against plain execution of the same pipelines."""

from __future__ import annotations

import grp
import os
import pickle
import pwd
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import FunctionTransformer, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from carrel.extensions.execution import Shelf, explain
from carrel.extensions.execution.shelf.fitted_steps import FittedSteps
from carrel.extensions.execution.shelf.shared_execution import with_shared_steps
from carrel.extensions.execution.shelf.stacked_classifiers import (
    stack_classifiers,
    with_own_coefficients,
)
from carrel.hub.errors import Forbidden, InvalidInput, NotFound

from .... import torch_packages
from ....property_settings import examples

TEXTS = ["red green blue", "green green tea", "blue sky above", "red wine, red rose", "tea or wine"]
LABELS = ["colour", "drink", "nature", "drink", "drink"]
NUMBERS = np.arange(20.0).reshape(5, 4) ** 1.5
with_onnx = pytest.mark.skipif(
    not torch_packages.available("skl2onnx"), reason="skl2onnx and onnxruntime are missing"
)


def text_pipeline(classifier: Any | None = None, **words: Any) -> Pipeline:
    return make_pipeline(TfidfVectorizer(**words), classifier or LogisticRegression()).fit(
        TEXTS, LABELS
    )


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 # dumped here


def power_of(rows: Any, power: float) -> Any:
    return rows**power


class Upper(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, texts: Any, labels: Any = None) -> Upper:
        return self

    def transform(self, texts: Any) -> list[str]:
        return [text.upper() for text in texts]


class Doubling(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of a user: it changes what it is given."""

    def fit(self, _rows: Any, _labels: Any = None) -> Doubling:
        return self

    def transform(self, rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            rows *= 2
        return rows


def test_equal_steps_are_kept_once_however_they_were_loaded() -> None:
    words = TfidfVectorizer().fit(TEXTS)
    matrix = words.transform(TEXTS)
    pipelines = [
        copied(make_pipeline(words, LogisticRegression(C=c).fit(matrix, LABELS)))
        for c in (0.1, 1, 10)
    ]
    shelf = Shelf(pipelines)
    assert (len(shelf), shelf.steps_kept) == (3, 4)
    assert explain(shelf).notes == (
        "3 pipelines with 6 steps; equal ones are kept once, which leaves 4.",
    )


def test_equal_fits_of_two_processes_are_kept_once() -> None:
    fitting = (
        "import pickle, sys; from sklearn.feature_extraction.text import TfidfVectorizer; "
        "words = TfidfVectorizer(stop_words=['or']).fit(sys.argv[1:]); "
        "sys.stdout.buffer.write(pickle.dumps(words))"
    )
    done = subprocess.run([sys.executable, "-c", fitting, *TEXTS], capture_output=True, check=True)
    elsewhere = pickle.loads(done.stdout)  # noqa: S301 # dumped above
    here = TfidfVectorizer(stop_words=["or"]).fit(TEXTS)
    assert Shelf([here, elsewhere]).steps_kept == 1
    assert Shelf([here, TfidfVectorizer(stop_words=["tea"]).fit(TEXTS)]).steps_kept == 2


def test_a_step_with_a_large_array_has_a_content() -> None:
    wide = make_pipeline(StandardScaler()).fit(np.zeros((2, 20_000)))
    shelf = Shelf([wide, copied(wide)])
    assert shelf.steps_kept == 1


@examples(4, 200)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 2.0]), st.sampled_from(["tree", "linear"])),
        min_size=1,
        max_size=4,
    )
)
def test_all_pipelines_give_what_each_gives_alone(kinds: list[tuple[float, str]]) -> None:
    pipelines = {
        f"{number}": make_pipeline(
            FunctionTransformer(power_of, kw_args={"power": power}),
            StandardScaler(),
            DecisionTreeClassifier(random_state=number) if kind == "tree" else Ridge(),
        ).fit(NUMBERS, range(5))
        for number, (power, kind) in enumerate(kinds)
    }
    shelf = Shelf(pipelines, seconds=0)
    found = shelf.predict(NUMBERS)
    assert list(found) == list(pipelines)
    for name, pipeline in pipelines.items():
        np.testing.assert_array_equal(found[name], pipeline.predict(NUMBERS))
        np.testing.assert_array_equal(shelf[name].predict(NUMBERS), pipeline.predict(NUMBERS))


LINEAR = (
    lambda number: LogisticRegression(C=number + 1),
    lambda number: LinearSVC(C=number + 1, fit_intercept=number % 2 == 0),
    lambda number: SGDClassifier(random_state=number),
    lambda number: Perceptron(random_state=number),
    lambda number: RidgeClassifier(alpha=number + 1),
    lambda _number: MultinomialNB(),
    lambda number: DecisionTreeClassifier(random_state=number),
)


@examples(6, 200)
@given(
    st.lists(
        st.tuples(st.sampled_from(LINEAR), st.sampled_from([2, 3]), st.booleans()),
        min_size=2,
        max_size=6,
    )
)
def test_classifiers_of_the_same_texts_give_what_each_gives_alone(
    kinds: list[tuple[Any, int, bool]],
) -> None:
    pipelines = {
        f"{number}": make_pipeline(CountVectorizer(binary=binary), make(number)).fit(
            TEXTS, [label if classes == 3 else label == "drink" for label in LABELS]
        )
        for number, (make, classes, binary) in enumerate(kinds)
    }
    steps = FittedSteps()
    shelved = {name: steps.add(name, each) for name, each in pipelines.items()}
    stacks = stack_classifiers(shelved, steps)
    rows = [*TEXTS, "", "nothing known", "red red tea"]
    for method in ("predict", "predict_proba"):
        found = with_shared_steps(list(shelved.values()), rows, method, stacks)
        for name, pipeline in pipelines.items():
            if not hasattr(pipeline, method):
                assert isinstance(found[name], AttributeError)
                continue
            expected = getattr(pipeline, method)(rows)
            # Not only close: a label may hang on the last bit of two scores.
            np.testing.assert_array_equal(found[name], expected)
            np.testing.assert_array_equal(getattr(shelved[name].whole, method)(rows), expected)
            assert found[name].dtype == expected.dtype


def scored(count: int, rows: list[str], **limits: Any) -> tuple[dict[str, Any], int]:
    """Return the labels of so many pipelines, and the most bytes that were allocated for them."""
    words = CountVectorizer().fit(TEXTS)
    matrix = words.transform(TEXTS)
    pipelines = [
        make_pipeline(words, Perceptron(random_state=number).fit(matrix, LABELS))
        for number in range(count)
    ]
    steps = FittedSteps()
    shelved = {str(at): steps.add(str(at), each) for at, each in enumerate(pipelines)}
    stacks = stack_classifiers(shelved, steps, **limits)
    tracemalloc.start()
    try:
        found = with_shared_steps(list(shelved.values()), rows, "predict", stacks)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for at, each in enumerate(pipelines):
        np.testing.assert_array_equal(found[str(at)], each.predict(rows))
    return found, most


@pytest.mark.parametrize("block_bytes", [1, 8 * 3 * 4 * 2, 8 * 3 * 4 * 5])
def test_scores_in_blocks_of_rows_give_the_same_results(block_bytes: int) -> None:
    rows = [*TEXTS, "", "nothing known"]
    found, _ = scored(4, rows, block_bytes=block_bytes)
    expected, _ = scored(4, rows)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
        assert found[name].dtype == expected[name].dtype


def test_the_memory_of_scores_does_not_grow_with_the_rows() -> None:
    count, classes, rows = 100, 3, [*TEXTS] * 1_000
    all_scores = 8 * count * classes * len(rows)
    labels, most = scored(count, rows, block_bytes=all_scores // 40)
    results = sum(each.nbytes for each in labels.values())
    assert most < results + all_scores / 2


def test_no_rows_are_refused_as_by_each_pipeline() -> None:
    shelf = Shelf([text_pipeline(LogisticRegression(C=c)) for c in (1, 10)], seconds=0)
    shelf.predict(TEXTS)
    with pytest.raises(ValueError, match="0 sample"):
        shelf.predict([])


def test_different_classifiers_of_the_same_texts_are_stacked() -> None:
    steps = FittedSteps()
    shelved = {
        str(number): steps.add(str(number), text_pipeline(make(number)))
        for number, make in enumerate(LINEAR)
    }
    (stack,) = stack_classifiers(shelved, steps).values()
    assert set(stack.heads) == {shelved[name].keys[-1] for name in "01234"}


def test_a_pipeline_that_is_executed_plainly_gets_coefficients_in_one_piece_of_memory() -> None:
    pipelines = [text_pipeline(LogisticRegression(C=c), ngram_range=(1, 2)) for c in (1, 10)]
    steps = FittedSteps()
    shelved = {str(at): steps.add(str(at), each) for at, each in enumerate(pipelines)}
    stack_classifiers(shelved, steps)
    shelf = Shelf(pipelines, seconds=0)
    for at, each in enumerate(pipelines):
        assert not shelved[str(at)].steps[-1].coef_.flags.c_contiguous
        own = with_own_coefficients(shelved[str(at)])
        assert own.whole.steps[-1][1].coef_.flags.c_contiguous
        for row in TEXTS:
            expected = each.predict_proba([row])
            np.testing.assert_array_equal(own.whole.predict_proba([row]), expected)
            np.testing.assert_array_equal(shelf[str(at)].predict_proba([row]), expected)


def test_stacked_classifiers_leave_the_users_pipelines_as_they_are() -> None:
    pipelines = [text_pipeline(LogisticRegression(C=c)) for c in (1, 10)]
    before = [each.steps[-1][1].coef_ for each in pipelines]
    shelf = Shelf(pipelines, seconds=0)
    shelf.predict(TEXTS)
    for each, coefficients in zip(pipelines, before, strict=True):
        assert each.steps[-1][1].coef_ is coefficients


def test_a_step_that_changes_its_input_is_executed_alone() -> None:
    scaler = StandardScaler().fit(NUMBERS)
    plain = make_pipeline(scaler, Ridge().fit(scaler.transform(NUMBERS), range(5)))
    doubled = scaler.transform(NUMBERS) * 2
    changing = make_pipeline(scaler, Doubling(), Ridge().fit(doubled, range(5)))
    shelf = Shelf({"plain": plain, "changing": changing}, seconds=0)
    expected = {"plain": plain.predict(NUMBERS), "changing": changing.predict(NUMBERS)}
    for _ in range(2):
        found = shelf.predict(NUMBERS)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
    assert "predict of changing is executed alone: with shared steps it failed" in str(
        explain(shelf)
    )


@pytest.mark.parametrize("first", [StandardScaler(copy=False), Doubling()], ids=["copy", "own"])
def test_rows_stay_as_they_are_when_a_step_writes_into_them(first: Any) -> None:
    changing = make_pipeline(first, Ridge()).fit(NUMBERS.copy(), range(5))
    plain = make_pipeline(StandardScaler(), Ridge()).fit(NUMBERS, range(5))
    pipelines = {"changing": changing, "again": copied(changing), "plain": plain}
    expected = {name: each.predict(NUMBERS.copy()) for name, each in pipelines.items()}
    shelf = Shelf(pipelines, seconds=0)
    rows = NUMBERS.copy()
    for _ in range(2):
        found = shelf.predict(rows)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values)
            np.testing.assert_allclose(shelf[name].predict(rows), values)
        np.testing.assert_array_equal(rows, NUMBERS)


def test_a_step_that_returns_its_input_leaves_it_writable() -> None:
    same = FunctionTransformer()
    pipelines = [make_pipeline(same, Ridge(a)).fit(NUMBERS, range(5)) for a in (1, 2)]
    # The second would otherwise be given the caller's rows by the step that it shares.
    pipelines.append(make_pipeline(same, Doubling(), Ridge()).fit(NUMBERS.copy(), range(5)))
    expected = [each.predict(NUMBERS.copy()) for each in pipelines]
    rows = NUMBERS.copy()
    shelf = Shelf(pipelines, seconds=0)
    for _ in range(2):
        for found, values in zip(shelf.predict(rows).values(), expected, strict=True):
            np.testing.assert_allclose(found, values)
        np.testing.assert_array_equal(rows, NUMBERS)
    assert rows.flags.writeable


def test_a_bad_row_of_a_first_call_decides_nothing() -> None:
    shelf = Shelf({"ada": text_pipeline(), "ben": text_pipeline(MultinomialNB())})
    assert all(isinstance(each, Exception) for each in shelf.results(["tea", None]).values())
    assert not explain(shelf).choices
    shelf.predict(TEXTS)
    assert list(explain(shelf).choices) == ["predict of all pipelines"]
    assert not [note for note in explain(shelf).notes if "executed alone" in note]


def test_a_pipeline_that_always_raises_keeps_others_from_sharing_for_a_few_calls_only() -> None:
    broken = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    broken.steps[-1][1].coef_ = np.zeros((3, 1))
    shelf = Shelf({"ada": text_pipeline(), "ben": text_pipeline(MultinomialNB()), "cy": broken})
    for _ in range(3):
        results = shelf.results(TEXTS)
        assert [name for name, each in results.items() if isinstance(each, Exception)] == ["cy"]
    explanation = explain(shelf)
    assert list(explanation.choices) == ["predict of all pipelines"]
    assert [note.partition(":")[0] for note in explanation.notes if "alone" in note] == [
        "predict of cy is executed alone"
    ]


@with_onnx
def test_plain_execution_of_one_row_chooses_nothing() -> None:
    pipeline = text_pipeline()
    shelf = Shelf({"ada": pipeline})
    assert list(shelf.execute_plainly("ada", TEXTS[:1])) == list(pipeline.predict(TEXTS[:1]))
    assert not explain(shelf).choices


def test_an_error_of_one_pipeline_is_not_that_of_the_others() -> None:
    shelf = Shelf(
        {"four": Ridge().fit(NUMBERS, range(5)), "two": Ridge().fit(NUMBERS[:, :2], [1] * 5)}
    )
    results = shelf.results(NUMBERS)
    assert results["four"].shape == (5,)
    assert isinstance(results["two"], ValueError)
    with pytest.raises(ValueError, match="expecting 2 features") as caught:
        shelf.predict(NUMBERS)
    assert caught.value.__notes__[-1] == "in the pipeline two"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "The shelf has no pipelines"),
        ("pipelines", "cannot be made of str"),
        ([3], "0 is 3, not an estimator"),
        ({"a": Ridge()}, "a is not fitted: Ridge has learnt nothing yet"),
        ([make_pipeline(StandardScaler(), Ridge())], "0 is not fitted: StandardScaler"),
    ],
)
def test_what_is_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Shelf(given)


def test_an_unknown_name_is_refused_with_the_names() -> None:
    with pytest.raises(NotFound, match=r"no pipeline b\. Its names: a\."):
        Shelf({"a": Ridge().fit(NUMBERS, range(5))})["b"]


def test_pickles_of_a_folder_are_loaded(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), Ridge()).fit(NUMBERS, range(5))
    for name in ("one.pkl", "two.pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(pipeline))
    (tmp_path / "notes.txt").write_text("no pickle")
    shelf = Shelf.load(tmp_path)
    assert (list(shelf), shelf.steps_kept) == (["one", "two"], 2)


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o1666], ids=oct)
def test_a_pickle_that_others_can_write_is_not_loaded(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.pkl"
    path.write_bytes(pickle.dumps(Ridge().fit(NUMBERS, range(5))))
    path.chmod(mode)
    course = grp.struct_group(("course", "x", path.stat().st_gid, ["ada", "ben"]))
    monkeypatch.setattr(grp, "getgrgid", lambda _: course)
    with pytest.raises(Forbidden, match="other users may write to it") as refused:
        Shelf.load(tmp_path)
    assert f"chmod go-w {path}" in str(refused.value.accepted)


def test_a_pickle_that_the_users_private_group_can_write_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.pkl"
    path.write_bytes(pickle.dumps(Ridge().fit(NUMBERS, range(5))))
    path.chmod(0o664)
    user = pwd.getpwuid(os.geteuid()).pw_name
    private = grp.struct_group((user, "x", path.stat().st_gid, []))
    monkeypatch.setattr(grp, "getgrgid", lambda _: private)
    assert list(Shelf.load(tmp_path)) == ["one"]


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps(NUMBERS)[:40]])
def test_a_damaged_pickle_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "one.pkl").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"one\.pkl cannot be loaded: \w+: .*[^.]\. A pickle"):
        Shelf.load(tmp_path)


@pytest.mark.parametrize("name", ["one.pkl", "one.joblib"])
def test_ten_gigabytes_of_zeros_are_refused(name: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(InvalidInput, match=rf"{name} cannot be loaded: \w+: .*\. A pickle"):
        Shelf.load(tmp_path)


@with_onnx
def test_a_transformer_without_conversion_is_executed_plainly_with_a_note() -> None:
    pipeline = make_pipeline(Upper(), CountVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    shelf = Shelf({"ada": pipeline})
    for text in TEXTS:
        assert list(shelf["ada"].predict([text])) == list(pipeline.predict([text]))
    assert "since Upper is no step of scikit-learn" in str(explain(shelf))


@with_onnx
@pytest.mark.parametrize(
    "pipeline",
    [
        text_pipeline(),
        text_pipeline(stop_words=["or"], lowercase=False),
        text_pipeline(SGDClassifier(random_state=0)),
        text_pipeline(LinearSVC()),
        make_pipeline(CountVectorizer(), TfidfTransformer(), MultinomialNB()).fit(TEXTS, LABELS),
        make_pipeline(CountVectorizer(binary=True), LogisticRegression()).fit(
            TEXTS, [label == "drink" for label in LABELS]
        ),
    ],
    ids=lambda pipeline: "-".join(name for name, _ in pipeline.steps),
)
def test_one_row_by_onnx_has_the_label_of_plain_execution(pipeline: Pipeline) -> None:
    shelf = Shelf({"a": pipeline})
    # Other alphabets, an empty text and a tie are executed plainly.
    for text in [*TEXTS, "", "grün RED", "RED red wine", "чай", "nothing known"]:
        found, expected = shelf["a"].predict([text]), pipeline.predict([text])
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        if hasattr(pipeline, "predict_proba"):
            np.testing.assert_allclose(
                shelf["a"].predict_proba([text]), pipeline.predict_proba([text]), atol=1e-3
            )
    _, onnx = explain(shelf).choices["predict of one row by a"].results
    # Which is faster depends on what else the machine does.
    assert onnx.name == "ONNX"
    assert not onnx.reason.startswith(("dropped", "failed"))


@pytest.mark.parametrize(
    ("pipeline", "row", "why"),
    [
        (text_pipeline(analyzer="char"), TEXTS[0], "TfidfVectorizer splits texts in its own way"),
        (text_pipeline(ngram_range=(1, 2)), TEXTS[0], "TfidfVectorizer counts sequences of words"),
        (text_pipeline(sublinear_tf=True), TEXTS[0], "ONNX computes sublinear_tf inexactly"),
        (text_pipeline(DecisionTreeClassifier()), TEXTS[0], "it does not end with a linear class"),
        (LogisticRegression().fit(NUMBERS, LABELS), list(NUMBERS[0]), "it has only one step"),
        (
            make_pipeline(Doubling(), Ridge()).fit(NUMBERS.copy(), range(5)),
            np.ones(4),
            "Doubling is no step of scikit-learn",
        ),
    ],
    ids=["characters", "pairs", "logarithm", "tree", "one step", "own step"],
)
def test_why_one_row_is_executed_plainly(pipeline: Any, row: Any, why: str) -> None:
    shelf = Shelf({"a": pipeline})
    assert shelf["a"].predict([row]) == pipeline.predict([row])
    assert f"One row of a is executed plainly, since {why}" in str(explain(shelf))
