"""Spaces of parameters: a grid, a list, random samples, or a search that chooses values by results.

Samplers and pruners have the names of Optuna (https://optuna.readthedocs.io), which the runner uses
for a search.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Final, TypeAlias

from ..admission.parameters import FieldType
from ..errors import InvalidInput
from ..messages import units
from .notebook_cells import SweepNotebook
from .trials import Scalar, Trial, check_count, check_names, check_value, checked_scalar, value_key

DEFAULT_SEED: Final = 0
MOST_SEARCHED: Final = 1000
"""Max number of trials of one search: each choice takes longer the more trials there are."""

_MOST_NAMED: Final = 8
"""Trials that a sentence names."""


class Sampler(StrEnum):
    """How a search chooses the values of the next trial."""

    TPE = "tpe"
    """Tree-structured Parzen estimator: values like those of the best trials so far."""
    RANDOM = "random"


class Pruner(StrEnum):
    """How a search finds the running trials that it stops early."""

    NONE = "none"
    ASHA = "asha"
    """Asynchronous successive halving: the best quarter goes on after 1, 4, 16, ... parts."""
    HYPERBAND = "hyperband"
    """Several of these, which begin at different steps."""
    MEDIAN = "median"
    """A trial stops if its best value is worse than the median of the others at that step."""


@dataclass(frozen=True, slots=True)
class GridSpace:
    """All combinations of the values; the last parameter changes fastest."""

    values: Mapping[str, tuple[Scalar, ...]]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput(
                "The grid is empty.", accepted="Give parameters with values, such as lr=0.1,0.01."
            )
        for name, values in self.values.items():
            _check_values(name, values)
        check_count(math.prod(map(len, self.values.values())))

    def check(self, notebook: SweepNotebook) -> GridSpace:
        """Return the space for a notebook. Raises InvalidInput if it does not fit."""
        check_names(self.values, notebook)
        for name, values in self.values.items():
            for value in values:
                check_value(notebook.parameters[name], value)
        return self

    def trials(self) -> tuple[Trial, ...]:
        combinations = product(*self.values.values())
        return _numbered(dict(zip(self.values, each, strict=True)) for each in combinations)

    def as_json(self) -> dict[str, object]:
        return {"grid": {name: list(values) for name, values in self.values.items()}}


@dataclass(frozen=True, slots=True)
class ListSpace:
    """The trials themselves; a parameter that a trial omits keeps its default."""

    entries: tuple[Mapping[str, Scalar], ...]

    def __post_init__(self) -> None:
        if not self.entries:
            raise InvalidInput(
                "The list of trials is empty.",
                accepted='Give a list of objects, such as [{"lr": 0.1}, {"lr": 0.01}].',
            )
        check_count(len(self.entries))

    def check(self, notebook: SweepNotebook) -> ListSpace:
        """Return the space for a notebook. Raises InvalidInput if it does not fit."""
        check_names(dict.fromkeys(name for each in self.entries for name in each), notebook)
        for entry in self.entries:
            for name, value in entry.items():
                check_value(notebook.parameters[name], value)
        return self

    def trials(self) -> tuple[Trial, ...]:
        return _numbered(self.entries)

    def as_json(self) -> dict[str, object]:
        return {"list": [dict(each) for each in self.entries]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """Numbers from ``low`` to ``high``, both included.

    Attributes:
        logarithmic: the logarithm of the samples is uniform.
        whole: samples are whole numbers.
    """

    low: float
    high: float
    logarithmic: bool = False
    whole: bool = False

    def sample(self, source: random.Random) -> Scalar:
        low, high = self.low, self.high
        if self.whole and not self.logarithmic:
            return source.randint(int(low), int(high))
        if self.logarithmic:
            found = math.exp(source.uniform(math.log(low), math.log(high)))
        else:
            found = source.uniform(low, high)
        found = min(max(found, low), high)
        return round(found) if self.whole else found

    def as_json(self) -> dict[str, object]:
        bounds = [self.low, self.high]
        return {"log" if self.logarithmic else "uniform": bounds}


Choice: TypeAlias = "tuple[Scalar, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSpace:
    """Samples of a range, or of a choice of values, for each parameter.

    Each sample depends on the seed, the number of the trial and the name of the parameter alone:
    more trials or parameters leave the others as they are.
    """

    parameters: Mapping[str, ValueRange | Choice]
    count: int
    seed: int = DEFAULT_SEED

    def __post_init__(self) -> None:
        _check_parameters("random space", self.parameters)
        check_count(self.count)

    def check(self, notebook: SweepNotebook) -> RandomSpace:
        """Return the space for a notebook: ``0..1`` are whole numbers only for a whole parameter.

        Raises:
            InvalidInput: it does not fit.
        """
        return replace(self, parameters=_fitted(self.parameters, notebook))

    def trials(self) -> tuple[Trial, ...]:
        return _numbered(
            {name: self._sample(name, number) for name in self.parameters}
            for number in range(1, self.count + 1)
        )

    def _sample(self, name: str, number: int) -> Scalar:
        source = random.Random(f"{self.seed}/{number}/{name}")  # noqa: S311  # no secret
        given = self.parameters[name]
        return source.choice(given) if isinstance(given, tuple) else given.sample(source)

    def as_json(self) -> dict[str, object]:
        return {
            "random": _parameters_json(self.parameters),
            "trials": self.count,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """Ranges and choices of which a sampler chooses the values of a trial when it starts."""

    parameters: Mapping[str, ValueRange | Choice]
    count: int
    seed: int = DEFAULT_SEED
    sampler: Sampler = Sampler.TPE
    pruner: Pruner = Pruner.NONE

    def __post_init__(self) -> None:
        _check_parameters("search space", self.parameters)
        if check_count(self.count) > MOST_SEARCHED:
            raise InvalidInput(
                f"This search would have {self.count:,} trials.",
                accepted=f"A search has from 1 to {MOST_SEARCHED:,} trials; --random has more.",
            )

    def check(self, notebook: SweepNotebook) -> SearchSpace:
        """Return the space for a notebook, as for random values. Raises InvalidInput."""
        return replace(self, parameters=_fitted(self.parameters, notebook))

    def trials(self) -> tuple[Trial, ...]:
        """Return trials with placeholders as values, which are different in all of them.

        Null is a placeholder of the parameters that can be null.
        """
        nullable = {
            n for n, each in self.parameters.items() if isinstance(each, tuple) and None in each
        }
        return _numbered(
            {
                name: None if number == 1 and name in nullable else f"?{number}"
                for name in self.parameters
            }
            for number in range(1, self.count + 1)
        )

    def admits(self, values: Mapping[str, object]) -> bool:
        """Whether the search can have chosen the values of a trial."""
        return values.keys() == self.parameters.keys() and all(
            _admits(given, values[name]) for name, given in self.parameters.items()
        )

    def as_json(self) -> dict[str, object]:
        return {
            "search": _parameters_json(self.parameters),
            "trials": self.count,
            "seed": self.seed,
            "sampler": str(self.sampler),
            "pruner": str(self.pruner),
        }


MOST_TOGETHER: Final = 256
"""Max number of trials that one run of the notebook trains: each has a file for its reports."""


def check_together(space: Space) -> None:
    """Raise InvalidInput if one run of the notebook cannot train all trials of the space."""
    if found := _together_obstacle(space):
        why, accepted = found
        raise InvalidInput(why, accepted=accepted, field="together")


def trained_together(space: Space, *, together: bool) -> str:
    """Say how many trials of a space one run of the notebook trains, and why not the others."""
    count = len(space.trials())
    begin = f"Trained as one: {count if together else 0} of {units.count(count, 'trial')}"
    if together:
        return f"{begin}, by one run of the notebook."
    if found := _together_obstacle(space):
        return f"{begin}. {found[0]}"
    return f"{begin}. With --together all could be, if the notebook takes lists of values."


def _together_obstacle(space: Space) -> tuple[str, str] | None:
    """Return why one run cannot train all trials, and what it could; None if it can."""
    if isinstance(space, SearchSpace):
        return (
            "A search cannot train its trials as one: it chooses values by the results of earlier "
            "trials.",
            "A grid, a list, or random values.",
        )
    trials = space.trials()
    if len(trials) > MOST_TOGETHER:
        return f"{len(trials):,} trials cannot be trained as one.", f"Up to {MOST_TOGETHER} trials."
    for name in dict.fromkeys(name for trial in trials for name in trial.values):
        if missing := [trial.number for trial in trials if name not in trial.values]:
            have = "has" if len(missing) == 1 else "have"
            return (
                f"{_trials_text(missing)} {have} no value for {name}, which other trials have.",
                "Trials that are trained as one have a value for each parameter.",
            )
    return None


def _trials_text(numbers: Sequence[int]) -> str:
    """Return ``Trials 1, 2 and 7``; after eight only how many more there are."""
    if len(numbers) == 1:
        return f"Trial {numbers[0]}"
    shown = [str(number) for number in numbers[:_MOST_NAMED]]
    more = len(numbers) - len(shown)
    *first, last = [*shown, f"{more} more"] if more else shown
    return f"Trials {', '.join(first)} and {last}"


Space: TypeAlias = "GridSpace | ListSpace | RandomSpace | SearchSpace"


def _numbered(values: Iterable[Mapping[str, Scalar]]) -> tuple[Trial, ...]:
    return tuple(Trial(number=number, values=each) for number, each in enumerate(values, start=1))


def _parameters_json(parameters: Mapping[str, ValueRange | Choice]) -> dict[str, object]:
    return {
        name: list(each) if isinstance(each, tuple) else each.as_json()
        for name, each in parameters.items()
    }


def _check_parameters(space: str, parameters: Mapping[str, ValueRange | Choice]) -> None:
    if not parameters:
        raise InvalidInput(
            f"The {space} is empty.",
            accepted="Give parameters with a range or values, such as lr=log:1e-4..1e-1.",
        )
    for name, given in parameters.items():
        if isinstance(given, tuple):
            _check_values(name, given)
        else:
            _check_range(name, given)


def _fitted(
    parameters: Mapping[str, ValueRange | Choice], notebook: SweepNotebook
) -> Mapping[str, ValueRange | Choice]:
    """Return ranges and choices for the parameters of a notebook. Raises InvalidInput."""
    check_names(parameters, notebook)
    fitted: dict[str, ValueRange | Choice] = {}
    for name, given in parameters.items():
        parameter = notebook.parameters[name]
        samples = given if isinstance(given, tuple) else (given.low, given.high)
        for value in samples:
            check_value(parameter, value)
        if isinstance(given, ValueRange) and parameter.field.type is FieldType.NUMBER:
            given = replace(given, whole=False)  # noqa: PLW2901  # fits the parameter now
        fitted[name] = given
    return fitted


def _admits(given: ValueRange | Choice, value: object) -> bool:
    if isinstance(given, tuple):
        is_scalar = value is None or isinstance(value, str | int | float)
        return is_scalar and value_key(value) in map(value_key, given)  # type: ignore[arg-type]  # checked
    kinds = int if given.whole else int | float
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    return is_number and given.low <= value <= given.high  # type: ignore[operator]  # a number


def _check_values(name: str, values: tuple[Scalar, ...]) -> None:
    if not values:
        raise InvalidInput(f"{name} has no values.", accepted=f"Such as {name}=0.1,0.01.")
    seen: set[str] = set()
    for value in values:
        key = value_key(checked_scalar(name, value))
        if key in seen:
            raise InvalidInput(
                f"{name} has the value {key} twice.",
                accepted="Give each value of a parameter once.",
            )
        seen.add(key)


def _check_range(name: str, given: ValueRange) -> None:
    if not (math.isfinite(given.high - given.low) and given.low < given.high):
        raise InvalidInput(
            f"The range of {name} goes from {given.low} to {given.high}.",
            accepted="The first bound must be below the second one.",
        )
    if given.logarithmic and given.low <= 0:
        raise InvalidInput(
            f"The logarithmic range of {name} begins at {given.low}.",
            accepted="Both bounds must be above 0.",
        )
