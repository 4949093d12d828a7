"""Keep equal fitted steps of pipelines once, known by the content of their pickles."""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ....hub.errors import InvalidInput

FITTED = "Fit it first: pipeline.fit(inputs, labels)."


class _Written(Protocol):
    def update(self, data: memoryview, /) -> None: ...


@dataclass(frozen=True, slots=True)
class _DigestFile:
    """A file whose content goes into a hash, so that no copy of a large step is made."""

    digest: _Written

    def write(self, data: bytes | pickle.PickleBuffer) -> int:
        """Take the next bytes; large arrays come as a buffer."""
        content = memoryview(data)
        self.digest.update(content)
        return content.nbytes


class _ContentPickler(pickle.Pickler):
    """Leaves out where a vectoriser's stop words were in memory, another place in each process."""

    def reducer_override(self, given: Any) -> Any:
        if type(given).__module__ != "sklearn.feature_extraction.text":
            return NotImplemented
        make, arguments, state, *rest = given.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if isinstance(state, dict):
            state = {key: value for key, value in state.items() if key != "_stop_words_id"}
        return make, arguments, state, *rest


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPipeline:
    """A pipeline with its steps as the shelf keeps them.

    Attributes:
        whole: what executes plainly; its steps are those below.
        steps: transformers, and what predicts; one for an estimator alone.
        keys: a name of the content of each step.
        changes_inputs: whether a step may write into the rows that it is given.
    """

    name: str
    whole: Any
    steps: tuple[Any, ...]
    keys: tuple[str, ...]
    changes_inputs: bool = False

    def own(self, inputs: Any) -> Any:
        """Return inputs into which this pipeline may write: a copy where it could."""
        return copy.deepcopy(inputs) if self.changes_inputs else inputs

    def execute(self, inputs: Any, method: str) -> Any:
        """Return the result of plain execution; the inputs stay as they are."""
        return getattr(self.whole, method)(self.own(inputs))


class FittedSteps:
    """The steps of all pipelines, each kept once."""

    def __init__(self) -> None:
        self._steps: dict[str, Any] = {}
        self.given = 0
        self.notes: list[str] = []

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, name: str, pipeline: Any) -> FittedPipeline:
        """Return a pipeline whose steps are those that are kept already, where they are equal.

        Raises:
            InvalidInput: it is no estimator, or is not fitted.
        """
        from sklearn.pipeline import Pipeline  # noqa: PLC0415 # where it is used

        check_fitted(name, pipeline)
        steps = [pipeline]
        # A subclass may do more than its steps; a step may be left out by a word.
        plain = type(pipeline) is Pipeline
        if plain and not any(step is None or isinstance(step, str) for _, step in pipeline.steps):
            steps = [step for _, step in pipeline.steps]
        keys = tuple(self._keep(name, step) for step in steps)
        kept = tuple(self._steps[key] for key in keys)
        whole = kept[0]
        if steps[0] is not pipeline:
            names = [name for name, _ in pipeline.steps]
            whole = Pipeline(list(zip(names, kept, strict=True)))
        changes = any(_may_change_inputs(step) for step in kept)
        return FittedPipeline(name=name, whole=whole, steps=kept, keys=keys, changes_inputs=changes)

    def kept(self, key: str) -> Any:
        """Return the step of a content."""
        return self._steps[key]

    def replace(self, key: str, step: Any) -> None:
        """Keep an equal step instead."""
        self._steps[key] = step

    def _keep(self, name: str, step: Any) -> str:
        self.given += 1
        try:
            key = content_key(step)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError):
            key = f"{name}, step {self.given}"
            self.notes.append(
                f"{type(step).__name__} of {name} is not shared, since it cannot be pickled."
            )
        self._steps.setdefault(key, step)
        return key


def content_key(step: object) -> str:
    """Return a hash of the pickle of a step.

    Equal objects have one pickle here whether they are one object or two, and whichever process
    fitted them.

    Raises:
        PicklingError, AttributeError, TypeError: it cannot be pickled.
        ValueError, RecursionError: it contains itself.
    """
    digest = hashlib.sha256()
    pickler = _ContentPickler(_DigestFile(digest), protocol=5)
    pickler.fast = True
    pickler.dump(step)
    return digest.hexdigest()


def _may_change_inputs(step: Any) -> bool:
    """Whether a step, or one within it, is the user's own code or was made with ``copy=False``."""
    if not type(step).__module__.startswith("sklearn."):
        return True
    return any(
        (hasattr(value, "fit") and not type(value).__module__.startswith("sklearn."))
        or (key.endswith("copy") and value is False)
        or (key.endswith("func") and callable(value))
        for key, value in step.get_params().items()
    )


def named(pipelines: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and pipelines of what the user passed.

    Raises:
        InvalidInput: it is neither a list nor a dict.
    """
    if isinstance(pipelines, Mapping):
        yield from ((str(name), pipeline) for name, pipeline in pipelines.items())
    elif isinstance(pipelines, list | tuple):
        yield from ((str(number), pipeline) for number, pipeline in enumerate(pipelines))
    else:
        raise InvalidInput(
            f"A shelf cannot be made of {type(pipelines).__name__}.",
            accepted="Pass fitted pipelines: a list, or a dict of names and pipelines.",
        )


def check_fitted(name: str, pipeline: Any) -> None:
    """Raise InvalidInput for what is no estimator, or has steps of scikit-learn to be fitted."""
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415 # where it is used
    from sklearn.pipeline import Pipeline  # noqa: PLC0415 # the same
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415 # the same

    if isinstance(pipeline, type) or not hasattr(pipeline, "fit"):
        raise InvalidInput(
            f"{name} is {pipeline!r:.80}, not an estimator of scikit-learn.",
            accepted="Pass fitted pipelines or estimators.",
        )
    parts = [step for _, step in pipeline.steps] if isinstance(pipeline, Pipeline) else [pipeline]
    for step in parts:
        # A transformer of the user may have nothing to learn.
        if not type(step).__module__.startswith("sklearn."):
            continue
        try:
            check_is_fitted(step)
        except (NotFittedError, TypeError):
            raise InvalidInput(
                f"{name} is not fitted: {type(step).__name__} has learnt nothing yet.",
                accepted=FITTED,
            ) from None
