"""Choose the values of trials by what earlier ones have reported, by means of Optuna.

The study lives in memory. Values of a trial depend on the seed, the number of the trial, and on the
trials that are known at that time: a study that is built again from the recorded trials goes on as
the first one would have. This module is imported for a search only: Optuna takes half a second.
"""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, cast

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    SuccessiveHalvingPruner,
)
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import TrialState as StudyState

from ....hub.attempts.trials import TrialRecord, TrialState
from ....hub.sweeps.space import Choice, Pruner, Sampler, SearchSpace, ValueRange
from ....hub.sweeps.trials import Scalar, value_key

Points: TypeAlias = "Sequence[tuple[int, float]]"
"""Steps and values of the objective."""
_STUDY: Final = "carrel"
"""Hyperband assigns trials to its brackets by this name and their numbers."""
_MOST_POINTS: Final = 200
"""Values of a trial that the pruner sees at a time; it copies all earlier ones for each of them."""


class Search:
    """The study of a sweep; trials have the numbers of the sweep."""

    def __init__(self, space: SearchSpace, *, maximize: bool) -> None:
        optuna.logging.set_verbosity(optuna.logging.CRITICAL)
        self.space = space
        self._distributions = {
            name: _distribution(given) for name, given in space.parameters.items()
        }
        self._trials: dict[int, optuna.Trial] = {}
        with _silent():
            self._study = optuna.create_study(
                study_name=_STUDY,
                direction="maximize" if maximize else "minimize",
                pruner=_pruner(space.pruner),
            )

    @property
    def prunes(self) -> bool:
        return self.space.pruner is not Pruner.NONE

    def __contains__(self, number: int) -> bool:
        """Whether a trial has begun and not ended."""
        return number in self._trials

    def begin(self, number: int, values: Mapping[str, object] | None = None) -> dict[str, Scalar]:
        """Return the values of a trial that starts.

        Args:
            values: those that were chosen for it before; others are chosen if these are none of
                the space.
        """
        known = values if values is not None and self.space.admits(values) else None
        with _silent():
            self._study.sampler = self._sampler(number)
            if known is not None:
                choices = self.space.parameters
                self._study.enqueue_trial(
                    {
                        name: value_key(cast("Scalar", value))
                        if isinstance(choices[name], tuple)
                        else value
                        for name, value in known.items()
                    }
                )
            trial = self._trials[number] = self._study.ask(self._distributions)
        return {
            name: json.loads(trial.params[name]) if isinstance(given, tuple) else trial.params[name]
            for name, given in self.space.parameters.items()
        }

    def report(self, number: int, points: Points) -> bool:
        """Add values of the objective of a running trial; return whether it should be stopped."""
        trial, prune = self._trials[number], False
        stride = math.ceil(len(points) / _MOST_POINTS) or 1
        with _silent():
            for step, value in points[::-stride][::-1]:  # the last one is always among them
                trial.report(value, step)
                prune = trial.should_prune() or prune
        return prune

    def end(self, number: int, state: TrialState, value: float | None) -> None:
        """Add the result of a trial; one without a finite objective counts as a failure.

        Args:
            value: of the objective; None if it was not reported.
        """
        trial = self._trials.pop(number)
        with _silent():
            if state is TrialState.SUCCEEDED and value is not None and math.isfinite(value):
                self._study.tell(trial, value)
            elif state is TrialState.PRUNED:
                self._study.tell(trial, state=StudyState.PRUNED)
            else:
                self._study.tell(trial, state=StudyState.FAIL)

    def replay(
        self, records: Iterable[TrialRecord], objective: str, points: Callable[[int], Points]
    ) -> None:
        """Add trials that have ended in an earlier attempt, in the order of their ends.

        Args:
            points: returns what a trial has reported; a pruner compares others with it.
        """
        known = [record for record in records if self.space.admits(record.values)]
        for record in sorted(known, key=lambda one: one.number):
            self.begin(record.number, record.values)
        for record in sorted(known, key=lambda one: (one.at, one.number)):
            if self.prunes:
                self.report(record.number, points(record.number))
            self.end(record.number, record.state, record.reported.get(objective))

    def _sampler(self, number: int) -> BaseSampler:
        """Return a sampler that is the same for a trial also if the study was built again."""
        source = random.Random(f"{self.space.seed}/{number}")  # noqa: S311  # no secret
        seed = source.randrange(1 << 32)
        if self.space.sampler is Sampler.RANDOM:
            return RandomSampler(seed=seed)
        return TPESampler(seed=seed)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the warnings of Optuna, which concern those who call it, out of the log of the job."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _distribution(given: ValueRange | Choice) -> BaseDistribution:
    """Return a distribution of Optuna; it has choices as JSON, since 1 and true are equal."""
    if isinstance(given, tuple):
        return CategoricalDistribution([value_key(each) for each in given])
    if given.whole:
        return IntDistribution(int(given.low), int(given.high), log=given.logarithmic)
    return FloatDistribution(given.low, given.high, log=given.logarithmic)


def _pruner(pruner: Pruner) -> BasePruner:
    match pruner:
        case Pruner.ASHA:
            return SuccessiveHalvingPruner()
        case Pruner.HYPERBAND:
            return HyperbandPruner()
        case Pruner.MEDIAN:
            return MedianPruner()
    return NopPruner()
