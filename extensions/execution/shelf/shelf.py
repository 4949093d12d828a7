"""Many fitted pipelines that keep and execute equal steps once: ``carrel.execution.Shelf``."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ....hub.errors import InvalidInput, NotFound
from ....hub.messages import units
from ..choice import (
    CALLS,
    SECONDS,
    ExecutionCandidate,
    ExecutionChoice,
    ExecutionSample,
    choose,
    failure,
)
from ..explanation import ExecutionExplanation
from . import pickle_files
from .fitted_steps import FittedPipeline, FittedSteps, named
from .onnx_steps import NotConvertible, OnnxSteps, probes
from .result_difference import prediction_difference, probability_difference
from .shared_execution import Results, plainly, with_shared_steps
from .stacked_classifiers import StackedClassifiers, stack_classifiers, with_own_coefficients

SAMPLE_ROWS: Final = 16
"""Rows of the first call on which ways of execution are compared and timed."""
_SINGLE_SECONDS: Final = 5.0
_FAILED_SAMPLES: Final = 3
"""After so many first calls with errors, pipelines that raise are executed alone."""


class Shelf:
    """Fitted scikit-learn pipelines; equal steps are kept once and executed once for all.

    ``shelf.predict(inputs)`` equals ``{name: pipeline.predict(inputs)}``, and
    ``shelf[name].predict(inputs)`` that of one pipeline. Linear classifiers that read the same
    features of texts get their scores from one product. A call with one row goes through ONNX
    where that is faster: labels are those of plain execution, probabilities may differ by 0.001.

    The pipelines must not be changed afterwards.

    Args:
        pipelines: a list, or a dict by names; fitted.
        calls: expected number of calls; see ``execution.explain``.
        seconds: time for a choice.

    Raises:
        InvalidInput: one is no estimator, or is not fitted.
    """

    def __init__(
        self,
        pipelines: Mapping[str, Any] | Iterable[Any],
        *,
        calls: int = CALLS,
        seconds: float = SECONDS,
    ) -> None:
        self._prepare(calls, seconds)
        self._fill(named(pipelines))

    def _prepare(self, calls: int, seconds: float) -> None:
        self._calls, self._seconds = calls, seconds
        self._steps = FittedSteps()
        self._pipelines: dict[str, FittedPipeline] = {}
        self._stacks: dict[tuple[str, ...], StackedClassifiers] = {}
        self._onnx = OnnxSteps()
        self._lock = threading.RLock()
        self._alone: dict[tuple[str, str], str] = {}
        self._shared: dict[str, Callable[[Any], Results]] = {}
        self._failed_samples: Counter[str] = Counter()
        self._own: dict[str, FittedPipeline] = {}
        self._single: dict[tuple[str, str], Callable[[Any], Any]] = {}
        self._choices: dict[str, ExecutionChoice] = {}
        self._plain_singles: dict[str, str] = {}

    def _fill(self, pipelines: Iterable[tuple[str, Any]]) -> None:
        for name, each in pipelines:
            self._pipelines[name] = self._steps.add(name, each)
        if not self._pipelines:
            raise InvalidInput("The shelf has no pipelines.", accepted="Pass at least one.")
        self._stacks = stack_classifiers(self._pipelines, self._steps)

    @classmethod
    def load(cls, folder: str | Path, *, calls: int = CALLS, seconds: float = SECONDS) -> Shelf:
        """Make a shelf of the pickles in a folder, named as the files are.

        One after another is loaded, so that equal steps are never in memory together.

        Raises:
            InvalidInput: a file is no pickle of a fitted pipeline; there is none.
            Forbidden: a file is not the user's own, or others may write to it: loading a pickle
                executes what it says.
        """
        made = cls.__new__(cls)
        made._prepare(calls, seconds)
        made._fill(pickle_files.pipelines_in(Path(folder)))
        return made

    def __getitem__(self, name: str) -> ShelvedPipeline:
        if name not in self._pipelines:
            known = ", ".join(list(self._pipelines)[:10])
            raise NotFound(f"The shelf has no pipeline {name}.", accepted=f"Its names: {known}.")
        return ShelvedPipeline(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self._pipelines

    def __iter__(self) -> Iterator[str]:
        return iter(self._pipelines)

    def __len__(self) -> int:
        return len(self._pipelines)

    @property
    def steps_kept(self) -> int:
        """How many steps are kept for all pipelines."""
        return len(self._steps)

    def predict(self, inputs: Any) -> dict[str, Any]:
        """Return the labels or values of all pipelines for the same rows.

        Raises:
            Exception: what a pipeline raises, with its name as a note.
        """
        return _without_errors(self.results(inputs))

    def predict_proba(self, inputs: Any) -> dict[str, Any]:
        """Return the probabilities of all pipelines for the same rows."""
        return _without_errors(self.results(inputs, "predict_proba"))

    def results(self, inputs: Any, method: str = "predict") -> Results:
        """Return the result of each pipeline, or the exception that it raised.

        A call whose rows make a pipeline raise is executed plainly, and the next one chooses: the
        rows of one caller say nothing of the pipelines.
        """
        if method not in self._shared:
            with self._lock:
                if method not in self._shared and (chosen := self._choose_shared(inputs, method)):
                    self._shared[method] = chosen
        if method not in self._shared:
            return plainly(list(self._pipelines.values()), inputs, method)
        return self._shared[method](inputs)

    def explanation(self) -> ExecutionExplanation:
        pipelines, steps = (
            units.count(len(self), "pipeline"),
            units.count(self._steps.given, "step"),
        )
        kept = (
            f"{pipelines} with {steps}; equal ones are kept once, which leaves {self.steps_kept}."
        )
        alone = (
            f"{method} of {name} is executed alone: {why}."
            for (method, name), why in self._alone.items()
        )
        singles = (f"One row of {name} is {why}." for name, why in self._plain_singles.items())
        return ExecutionExplanation(
            choices=self._choices, notes=(kept, *self._steps.notes, *alone, *singles)
        )

    def execute(self, name: str, inputs: Any, method: str) -> Any:
        """Return the result of one pipeline."""
        pipeline = self._pipelines[name]
        if not (isinstance(inputs, list | tuple) and len(inputs) == 1):
            return pipeline.execute(inputs, method)
        key = (name, method)
        if key not in self._single:
            with self._lock:
                if key not in self._single:
                    self._single[key] = self._choose_single(pipeline, inputs, method)
        return self._single[key](inputs)

    def execute_plainly(self, name: str, inputs: Any, method: str = "predict") -> Any:
        """Return the result of one pipeline; no way of execution is chosen."""
        return self._pipelines[name].execute(inputs, method)

    def estimator(self, name: str) -> Any:
        """Return the estimator of one pipeline, with the steps that the shelf keeps."""
        return self._pipelines[name].whole

    # -- choices ----------------------------------------------------------------------------

    def _choose_shared(self, inputs: Any, method: str) -> Callable[[Any], Results] | None:
        """Return the way of execution; None if these rows do not allow to choose one."""
        every = list(self._pipelines.values())
        sample = copy.deepcopy(_sample(inputs))
        expected = plainly(every, copy.deepcopy(sample), method)
        failed = sum(isinstance(each, Exception) for each in expected.values())
        if failed:
            self._failed_samples[method] += 1
            if failed == len(every) or self._failed_samples[method] < _FAILED_SAMPLES:
                return None
        found = with_shared_steps(every, copy.deepcopy(sample), method, self._stacks)
        for each in every:
            if why := _reason(each, expected[each.name], found[each.name]):
                self._alone[method, each.name] = why
        together = [each for each in every if (method, each.name) not in self._alone]

        def shared(rows: Any) -> Results:
            results = with_shared_steps(together, rows, method, self._stacks)
            # Plain execution raises the error of the caller, or none.
            plain = [
                each
                for each in every
                if each.name not in results or isinstance(results[each.name], Exception)
            ]
            results |= plainly(plain, rows, method)
            return {each.name: results[each.name] for each in every}

        chosen, choice = choose(
            [
                ExecutionCandidate(name="plain", build=lambda: _all_plainly(every, method)),
                ExecutionCandidate(name="equal steps once", build=lambda: shared),
            ],
            ExecutionSample(
                call=lambda function: function(copy.deepcopy(sample)),
                difference=_difference_of_results,
            ),
            calls=self._calls,
            seconds=self._seconds,
        )
        self._choices[f"{method} of all pipelines"] = choice
        return chosen

    def _choose_single(
        self, pipeline: FittedPipeline, inputs: Any, method: str
    ) -> Callable[[Any], Any]:
        plain: Callable[[Any], Any] = partial(pipeline.execute, method=method)
        plain(inputs)  # its errors are the caller's, and no choice is made by them
        try:
            converted = self._onnx.function(pipeline, method)
        except NotConvertible as error:
            self._plain_singles[pipeline.name] = f"executed plainly, since {error}"
            return self._plain_single(pipeline, method)
        except Exception as error:  # converters raise errors of many kinds
            self._plain_singles[pipeline.name] = (
                f"executed plainly, since its conversion {failure(error)}"
            )
            return self._plain_single(pipeline, method)
        texts = [[text] for text in probes(pipeline)]
        chosen, choice = choose(
            [
                ExecutionCandidate(name="plain", build=lambda: plain),
                ExecutionCandidate(name="ONNX", build=lambda: converted),
            ],
            ExecutionSample(
                call=lambda function: function(inputs),
                result=lambda function: [function(each) for each in (inputs, *texts)],
                difference=probability_difference,
            ),
            calls=self._calls,
            seconds=min(self._seconds, _SINGLE_SECONDS),
        )
        self._choices[f"{method} of one row by {pipeline.name}"] = choice
        return self._plain_single(pipeline, method) if chosen is plain else chosen

    def _plain_single(self, pipeline: FittedPipeline, method: str) -> Callable[[Any], Any]:
        stack = self._stacks.get(pipeline.keys[:-1])
        if stack is None or pipeline.keys[-1] not in stack.heads:
            return partial(pipeline.execute, method=method)
        if pipeline.name not in self._own:
            self._own[pipeline.name] = with_own_coefficients(pipeline)
        return partial(self._own[pipeline.name].execute, method=method)


class ShelvedPipeline:
    """One pipeline of a shelf."""

    __slots__ = ("_name", "_shelf")

    def __init__(self, shelf: Shelf, name: str) -> None:
        self._shelf, self._name = shelf, name

    @property
    def estimator(self) -> Any:
        """What executes plainly, with the steps that the shelf keeps."""
        return self._shelf.estimator(self._name)

    def predict(self, inputs: Any) -> Any:
        """Return labels or values of rows."""
        return self._shelf.execute(self._name, inputs, "predict")

    def predict_proba(self, inputs: Any) -> Any:
        """Return the probabilities of the classes for rows."""
        return self._shelf.execute(self._name, inputs, "predict_proba")

    def explanation(self) -> ExecutionExplanation:
        return self._shelf.explanation()


def _all_plainly(pipelines: list[FittedPipeline], method: str) -> Callable[[Any], Results]:
    return lambda rows: plainly(pipelines, rows, method)


def _sample(inputs: Any) -> Any:
    """Return a few rows.

    Raises:
        InvalidInput: the inputs have no rows.
    """
    rows = getattr(inputs, "iloc", inputs)
    try:
        return rows[:SAMPLE_ROWS]
    except TypeError:
        raise InvalidInput(
            f"The inputs are {type(inputs).__name__}, which has no rows.",
            accepted="Pass a list, an array or a table.",
        ) from None


def _reason(pipeline: FittedPipeline, plain: Any, shared: Any) -> str:
    if any(getattr(step, "copy", True) is False for step in pipeline.steps):
        return "a step with copy=False changes its input"
    if isinstance(plain, Exception):
        return f"it {failure(plain)}"
    if isinstance(shared, Exception):
        return f"with shared steps it {failure(shared)}"
    return prediction_difference(plain, shared)


def _difference_of_results(plain: Results, other: Results) -> str:
    values = {name: each for name, each in plain.items() if not isinstance(each, Exception)}
    failed = [name for name in values if isinstance(other[name], Exception)]
    if failed:
        return f"{failed[0]}: {failure(other[failed[0]])}"
    return prediction_difference(values, other)


def _without_errors(results: Results) -> Results:
    for name, result in results.items():
        if isinstance(result, Exception):
            result.add_note(f"in the pipeline {name}")
            raise result
    return results
