"""Keep the coefficients of linear classifiers with equal features in one matrix.

One product gives the scores of all of them; scikit-learn's own code makes labels and probabilities
of each one's columns. The product of a sparse and a dense matrix adds up each element in the same
order whichever rows and columns stand beside it, so scores are those of plain execution. Products
are made for blocks of rows, as the scores of all classifiers for all rows may not fit into memory.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from .fitted_steps import FittedPipeline, FittedSteps

_SPARSE_STEPS: Final = (
    "CountVectorizer", "HashingVectorizer", "Normalizer", "TfidfTransformer", "TfidfVectorizer",
)  # fmt: skip  # a list
"""Steps after which features are a sparse matrix, if the first reads texts."""
_CLASSIFIERS: Final = (
    "LinearSVC", "LogisticRegression", "Perceptron", "RidgeClassifier", "SGDClassifier",
)  # fmt: skip  # a list
BLOCK_BYTES: Final = 32 << 20
"""Most bytes of the scores of one block of rows, unless those of a single row are more."""


@dataclass(frozen=True, slots=True)
class StackedClassifiers:
    """Linear classifiers that read the same features.

    Attributes:
        together: a classifier with the coefficients of all.
        heads: by content, what makes labels of scores, and its columns.
        block_bytes: most bytes of scores at a time, unless those of a single row are more.
    """

    together: Any
    heads: dict[str, tuple[Any, slice]]
    block_bytes: int = BLOCK_BYTES

    def results(self, features: Any, method: str, keys: Collection[str]) -> dict[str, Any]:
        """Return the results of classifiers that ``has`` named.

        Raises:
            TypeError: the features are no sparse matrix.
            ValueError: they are not finite, or of another width, or there are no rows.
        """
        import numpy as np  # noqa: PLC0415 # where it is used

        if not hasattr(features, "tocsr"):
            raise TypeError(f"features are {type(features).__name__}, not a sparse matrix")
        features = features.tocsr()
        count, size = features.shape[0], self._block_rows()
        if count <= size:
            scores = self.together.decision_function(features)
            return {key: self._result(key, scores, method) for key in keys}
        found: dict[str, Any] = {}
        for first in range(0, count, size):
            scores = self.together.decision_function(features[first : first + size])
            for key in keys:
                part = self._result(key, scores, method)
                if not first:
                    found[key] = np.empty((count, *part.shape[1:]), part.dtype)
                found[key][first : first + size] = part
        return found

    def _block_rows(self) -> int:
        coefficients = self.together.coef_
        row_bytes: int = coefficients.itemsize * len(coefficients)
        return max(1, self.block_bytes // row_bytes)

    def has(self, key: str, method: str) -> bool:
        """Whether a method of a classifier is here, and needs no more than its scores."""
        if key not in self.heads:
            return False
        head, _ = self.heads[key]
        return method == "predict" or (
            method == "predict_proba" and type(head).__name__ == "LogisticRegression"
        )

    def _result(self, key: str, scores: Any, method: str) -> Any:
        head, columns = self.heads[key]
        own = scores[:, columns].copy()
        return getattr(head, method)(own[:, 0] if own.shape[1] == 1 else own)


def stack_classifiers(
    pipelines: dict[str, FittedPipeline], steps: FittedSteps, *, block_bytes: int = BLOCK_BYTES
) -> dict[tuple[str, ...], StackedClassifiers]:
    """Return the stacks by the steps before them; pipelines keep views of their coefficients.

    Args:
        block_bytes: most bytes of the scores of a stack at a time.
    """
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in pipelines.values():
        if _can_be_stacked(each):
            groups.setdefault(each.keys[:-1], {})[each.keys[-1]] = each.steps[-1]
    stacks = {}
    for before, classifiers in groups.items():
        if len({step.coef_.shape[1] for step in classifiers.values()}) != 1:
            continue
        if len(classifiers) > 1:
            stacks[before] = _stack(classifiers, steps, block_bytes)
    _use_kept_steps(pipelines, steps, (key for stack in stacks.values() for key in stack.heads))
    return stacks


def _stack(classifiers: dict[str, Any], steps: FittedSteps, block_bytes: int) -> StackedClassifiers:
    import numpy as np  # noqa: PLC0415 # where it is used

    # A row a feature, so that the product reads the coefficients as they are.
    total = sum(len(step.coef_) for step in classifiers.values())
    first = next(iter(classifiers.values()))
    coefficients = np.empty((first.coef_.shape[1], total))
    offsets = np.empty(total)
    heads, begin = {}, 0
    for key, step in classifiers.items():
        columns = slice(begin, begin + len(step.coef_))
        coefficients[:, columns] = step.coef_.T
        offsets[columns] = step.intercept_
        kept = copy.copy(step)  # the user's own stays as it is
        kept.coef_ = coefficients[:, columns].T
        steps.replace(key, kept)
        head = copy.copy(kept)
        head.decision_function = _given
        heads[key] = (head, columns)
        begin = columns.stop
    together = copy.copy(first)
    together.coef_, together.intercept_ = coefficients.T, offsets
    return StackedClassifiers(together, heads, block_bytes)


def _given(scores: Any) -> Any:
    return scores


def _use_kept_steps(
    pipelines: dict[str, FittedPipeline], steps: FittedSteps, changed: Iterable[str]
) -> None:
    keys = set(changed)
    for name, each in pipelines.items():
        if each.keys[-1] in keys and len(each.keys) > 1:
            pipelines[name] = _with_last_step(each, steps.kept(each.keys[-1]))


def with_own_coefficients(pipeline: FittedPipeline) -> FittedPipeline:
    """Return a pipeline of a stack with a classifier whose coefficients are in one piece of memory.

    A product with a view copies it first, which costs a tenth of a call with one text.
    """
    import numpy as np  # noqa: PLC0415 # where it is used

    last = pipeline.steps[-1]
    own = copy.copy(last)
    own.coef_ = np.ascontiguousarray(last.coef_)
    return _with_last_step(pipeline, own)


def _with_last_step(pipeline: FittedPipeline, last: Any) -> FittedPipeline:
    from sklearn.pipeline import Pipeline  # noqa: PLC0415 # where it is used

    kept = (*pipeline.steps[:-1], last)
    names = [step for step, _ in pipeline.whole.steps]
    return replace(pipeline, whole=Pipeline(list(zip(names, kept, strict=True))), steps=kept)


def _can_be_stacked(pipeline: FittedPipeline) -> bool:
    import numpy as np  # noqa: PLC0415 # where it is used
    from sklearn.linear_model._base import LinearClassifierMixin  # noqa: PLC0415 # the same

    *before, last = pipeline.steps
    if not before or not type(before[0]).__name__.endswith("Vectorizer"):
        return False
    if not all(type(step).__module__.startswith("sklearn.") for step in pipeline.steps):
        return False
    if any(type(step).__name__ not in _SPARSE_STEPS for step in before):
        return False
    if type(last).__name__ not in _CLASSIFIERS:
        return False
    if type(last).decision_function is not LinearClassifierMixin.decision_function:
        return False
    coefficients = getattr(last, "coef_", None)
    return (
        isinstance(coefficients, np.ndarray)
        and coefficients.ndim == 2  # noqa: PLR2004 # a matrix
        and coefficients.dtype == np.float64
        and np.shape(last.intercept_) in ((), (len(coefficients),))
    )
