"""Execute single rows of text: words by ONNX Runtime, the linear classifier by its coefficients.

Each vectoriser has one session for all pipelines that share it. The conversion is close to
scikit-learn, not equal: it computes in single precision, and splits words as scikit-learn does in
ASCII only. So other texts, and decisions that rounding could turn, are executed plainly.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from typing import Any, Final

from .fitted_steps import FittedPipeline

_SAFE_MARGIN: Final = 1e-3
"""Least distance of the two highest scores, as a part of the highest: far above rounding."""
_ROUNDING: Final = 1e-5
_VECTORISERS: Final = ("CountVectorizer", "TfidfVectorizer")
_BETWEEN: Final = ("Normalizer", "TfidfTransformer")
_CLASSIFIERS: Final = (
    "LinearSVC", "LogisticRegression", "MultinomialNB", "Perceptron", "RidgeClassifier",
    "SGDClassifier",
)  # fmt: skip  # a list
"""Classifiers whose label is that of the highest of linear scores."""
_WITH_SOFTMAX: Final = ("LogisticRegression", "MultinomialNB")
"""Those whose probabilities are the softmax of the scores."""
_WORDS: Final = r"(?u)\b\w\w+\b"
PROBES: Final = (
    "", " ", "a", "a b c", "it's", "x_y-z.w", "A1 22 333,4", "tab\tand\nline", "ONE one oNe",
    "the and of is", "(a+b)*c = 1e5", "semi;colon:dot..", "  leading and trailing  ",
)  # fmt: skip  # a list
"""Texts on which a conversion is compared, beside the user's."""


class NotConvertible(Exception):
    """A pipeline that is executed plainly; the text says why."""


class OnnxSteps:
    """The converted steps, by content."""

    def __init__(self) -> None:
        self._sessions: dict[str, Any] = {}
        self._compared: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()

    def function(self, pipeline: FittedPipeline, method: str) -> Callable[[Any], Any]:
        """Return what executes one row: a list with one text.

        Raises:
            NotConvertible: it has a step without a faithful conversion, or a package is missing.
        """
        _check(pipeline, method)
        with self._lock:
            sessions = [
                self._session(step, key)
                for step, key in zip(pipeline.steps[:-1], pipeline.keys, strict=False)
            ]
            self._compare(pipeline, sessions)
        return _function(pipeline, sessions, method)

    def _compare(self, pipeline: FittedPipeline, sessions: list[Any]) -> None:
        """Compare the features of texts, of which labels would show only large differences.

        Raises:
            NotConvertible: they differ by more than rounding.
        """
        if pipeline.keys[:-1] in self._compared:
            return
        import numpy as np  # noqa: PLC0415 # where it is used

        texts = probes(pipeline)
        expected = pipeline.whole[:-1].transform(texts).toarray()
        for text, row in zip(texts, expected, strict=True):
            value = np.array([text], dtype=object)
            for session in sessions:
                value = session.run(None, {"x": value})[0]
            if not np.allclose(value[0], row, rtol=_ROUNDING, atol=_ROUNDING):
                raise NotConvertible("ONNX computes other features of its texts")
        self._compared.add(pipeline.keys[:-1])

    def _session(self, step: Any, key: str) -> Any:
        if key not in self._sessions:
            self._sessions[key] = _converted(step)
        return self._sessions[key]


def probes(pipeline: FittedPipeline) -> list[str]:
    """Return texts on which a conversion is compared, some of words that the pipeline knows."""
    known = list(getattr(pipeline.steps[0], "vocabulary_", {}))
    chosen = known[:: max(1, len(known) // 12)][:12]
    together = " ".join(chosen)
    often = " ".join(word for number, word in enumerate(chosen) for _ in range(number + 1))
    return [*PROBES, *chosen, together, together.upper(), f"{together}. {often}, unknownword"]


def _check(pipeline: FittedPipeline, method: str) -> None:
    if len(pipeline.steps) == 1:
        raise NotConvertible("it has only one step")
    first, *between, last = [type(step).__name__ for step in pipeline.steps]
    for step in pipeline.steps:
        if not type(step).__module__.startswith("sklearn."):
            raise NotConvertible(f"{type(step).__name__} is no step of scikit-learn")
    if first not in _VECTORISERS:
        raise NotConvertible("only pipelines that begin with words of texts are converted to ONNX")
    text = pipeline.steps[0]
    given = (text.preprocessor, text.tokenizer, text.input != "content" or None)
    if text.analyzer != "word" or text.token_pattern != _WORDS or any(given):
        raise NotConvertible(f"{first} splits texts in its own way")
    # Converted inexactly: pairs of words, and the logarithm of counts.
    if text.ngram_range != (1, 1):
        raise NotConvertible(f"{first} counts sequences of words")
    if any(getattr(step, "sublinear_tf", False) for step in pipeline.steps):
        raise NotConvertible("ONNX computes sublinear_tf inexactly")
    for name in between:
        if name not in _BETWEEN:
            raise NotConvertible(f"{name} is not converted to ONNX")
    own_models = last == "LogisticRegression" and hasattr(pipeline.steps[-1], "multi_class")
    if last not in _CLASSIFIERS or own_models:  # an older scikit-learn may have one a class
        raise NotConvertible("it does not end with a linear classifier")
    if method != "predict" and (method != "predict_proba" or last not in _WITH_SOFTMAX):
        raise NotConvertible(f"{method} of {last} is not converted to ONNX")


def _function(pipeline: FittedPipeline, sessions: list[Any], method: str) -> Callable[[Any], Any]:
    import numpy as np  # noqa: PLC0415 # where it is used

    plain = getattr(pipeline.whole, method)
    classifier = pipeline.steps[-1]
    bayes = type(classifier).__name__ == "MultinomialNB"
    weights = classifier.feature_log_prob_ if bayes else classifier.coef_
    offset = classifier.class_log_prior_ if bayes else classifier.intercept_
    weights = np.atleast_2d(weights)

    def execute(inputs: Any) -> Any:
        text = inputs[0]
        if not (isinstance(text, str) and text.isascii()):
            return plain(inputs)
        value = np.array([text], dtype=object)
        for session in sessions:
            value = session.run(None, {"x": value})[0]
        row = value[0]
        present = row.nonzero()[0]
        scores = weights[:, present] @ row[present] + offset
        if len(scores) == 1:
            # The score of the second class; that of the first is none.
            scores = np.array([0.0, scores[0]])
        if method == "predict_proba":
            powers = np.exp(scores - scores.max())
            return (powers / powers.sum())[np.newaxis]
        first, second = np.sort(scores)[[-1, -2]]
        if not first - second > _SAFE_MARGIN * max(1.0, np.abs(scores).max()):
            return plain(inputs)
        return classifier.classes_.take([scores.argmax()])

    return execute


def _converted(step: Any) -> Any:
    """Return a session for a step.

    Raises:
        NotConvertible: a package is missing.
    """
    try:
        import onnxruntime  # noqa: PLC0415 # optional
        import skl2onnx  # noqa: PLC0415 # optional
    except ModuleNotFoundError as error:
        raise NotConvertible(
            f"{error.name} is not installed: pip install 'carrel[shelf]'"
        ) from error
    from skl2onnx.common.data_types import (  # noqa: PLC0415 # the same
        FloatTensorType,
        StringTensorType,
    )

    text = type(step).__name__ in _VECTORISERS
    kind = StringTensorType([None]) if text else FloatTensorType([None, step.n_features_in_])
    # The default locale is en_US, which a small image does not have.
    options = {id(step): {"locale": "C"}} if text else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("skl2onnx").setLevel(logging.ERROR)
        model = skl2onnx.to_onnx(step, initial_types=[("x", kind)], options=options)
    settings = onnxruntime.SessionOptions()
    # Threads of a small step wait for each other longer than they compute.
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.enable_cpu_mem_arena = False
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
