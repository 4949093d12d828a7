"""Spaces of parameters: a grid, a list, or random samples with a recorded seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, TypeAlias

from ..admission.parameters import FieldType
from ..errors import InvalidInput
from .notebook_cells import SweepNotebook
from .trials import Scalar, Trial, check_count, check_names, check_value, checked_scalar, value_key

DEFAULT_SEED: Final = 0


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
        if not self.parameters:
            raise InvalidInput(
                "The random space is empty.",
                accepted="Give parameters with a range or values, such as lr=log:1e-4..1e-1.",
            )
        for name, given in self.parameters.items():
            if isinstance(given, tuple):
                _check_values(name, given)
            else:
                _check_range(name, given)
        check_count(self.count)

    def check(self, notebook: SweepNotebook) -> RandomSpace:
        """Return the space for a notebook: ``0..1`` are whole numbers only for a whole parameter.

        Raises:
            InvalidInput: it does not fit.
        """
        check_names(self.parameters, notebook)
        fitted: dict[str, ValueRange | Choice] = {}
        for name, given in self.parameters.items():
            parameter = notebook.parameters[name]
            samples = given if isinstance(given, tuple) else (given.low, given.high)
            for value in samples:
                check_value(parameter, value)
            if isinstance(given, ValueRange) and parameter.field.type is FieldType.NUMBER:
                given = replace(given, whole=False)  # noqa: PLW2901  # fits the parameter now
            fitted[name] = given
        return replace(self, parameters=fitted)

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
        parameters = {
            name: list(each) if isinstance(each, tuple) else each.as_json()
            for name, each in self.parameters.items()
        }
        return {"random": parameters, "trials": self.count, "seed": self.seed}


Space: TypeAlias = "GridSpace | ListSpace | RandomSpace"


def _numbered(values: Iterable[Mapping[str, Scalar]]) -> tuple[Trial, ...]:
    return tuple(Trial(number=number, values=each) for number, each in enumerate(values, start=1))


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
    if not (math.isfinite(given.low) and math.isfinite(given.high) and given.low < given.high):
        raise InvalidInput(
            f"The range of {name} goes from {given.low} to {given.high}.",
            accepted="The first bound must be below the second one.",
        )
    if given.logarithmic and given.low <= 0:
        raise InvalidInput(
            f"The logarithmic range of {name} begins at {given.low}.",
            accepted="Both bounds must be above 0.",
        )
