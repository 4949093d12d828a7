"""How the run time of a program grows with its parameters: a power law beside a fixed part."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Self

from .past_runs import PlannedRun

FEWEST = 6
"""Number of runs from which a law is fitted."""
_FEWEST_SETTINGS = 4
_MOST_NAMES = 4
_FIXED = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95)
"""Shares of the shortest run that may not depend on the parameters: the start of the kernel, the
imports, reading data."""
_RIDGE = 1e-3
_BEYOND = 4.0
"""A law is used up to so many times the largest size of the runs, and down to such a part."""
_BETTER = 0.8
"""A law is used if its error is at most so many times that of the median."""
_LEAST_SECONDS = 1e-3
_SINGULAR = 1e-12
_HALF_WIDTH = 1.645 / math.sqrt(2 / math.pi)
"""The 95 % quantile of a normal distribution as a multiple of its mean absolute deviation."""
DEVICES = "carrel.devices"


@dataclass(frozen=True, slots=True)
class ScalingRun:
    """A complete run: its positive numbers by name, and its seconds."""

    sizes: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLaw:
    """``fixed + exp(constant) * product of (size ** exponent)`` seconds.

    Attributes:
        error: the mean absolute error of the logarithm, each run predicted from the others.
        ranges: the smallest and the largest size of each name in the runs.
    """

    fixed: float
    constant: float
    exponents: Mapping[str, float]
    error: float
    ranges: Mapping[str, tuple[float, float]]

    @property
    def half_width(self) -> float:
        """Half of a 90 % interval, as a difference of logarithms of normally distributed errors."""
        return _HALF_WIDTH * self.error

    def seconds(self, plan: PlannedRun) -> float | None:
        """Return the run time of a plan; None for one without all of the sizes, or far outside of
        what the runs had."""
        sizes = sizes_of(plan)
        for name, (least, most) in self.ranges.items():
            if not least / _BEYOND <= sizes.get(name, -1.0) <= most * _BEYOND:
                return None
        power = self.constant + math.fsum(
            exponent * math.log(sizes[name]) for name, exponent in self.exponents.items()
        )
        return _seconds(self.fixed, power)


def sizes_of(plan: PlannedRun) -> dict[str, float]:
    """Return the parameters that are positive numbers, and the number of devices."""
    found = {
        name: float(value)
        for name, value in plan.parameters.items()
        if isinstance(value, int | float) and 0 < value < math.inf
    }
    return found | ({DEVICES: float(plan.devices)} if plan.devices else {})


def fit_law(runs: Collection[ScalingRun]) -> ScalingLaw | None:
    """Return the law that predicts these runs best; None where the median does about as well.

    Each law is least squares in logarithms, and its error is that of runs that are left out, by the
    diagonal of the hat matrix.
    """
    names = _varying(runs)
    settings = {tuple(run.sizes.get(name) for name in names) for run in runs}
    if len(runs) < max(FEWEST, len(names) + 3) or len(settings) < _FEWEST_SETTINGS or not names:
        return None
    design = _Design.of([[1.0, *(math.log(run.sizes[name]) for name in names)] for run in runs])
    if design is None:
        return None
    seconds = [run.seconds for run in runs]
    ranges = {
        name: (min(run.sizes[name] for run in runs), max(run.sizes[name] for run in runs))
        for name in names
    }
    laws = [_fit(ranges, design, seconds, share * min(seconds)) for share in _FIXED]
    best = min(laws, key=lambda law: law.error)
    logs = [math.log(each) for each in seconds]
    middle = median(logs)
    spread = fmean(abs(each - middle) for each in logs)
    return best if best.error <= _BETTER * spread else None


def _varying(runs: Collection[ScalingRun]) -> list[str]:
    """Return the names of sizes that all runs have and that differ, at most ``_MOST_NAMES``."""
    if not runs:
        return []
    common = set.intersection(*(set(run.sizes) for run in runs))
    values = {name: {run.sizes[name] for run in runs} for name in common}
    found = sorted(common, key=lambda name: (-len(values[name]), name))
    return [name for name in found if len(values[name]) > 1][:_MOST_NAMES]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """The part of least squares that does not depend on the seconds.

    Attributes:
        rows: one and the logarithms of the sizes, of each run.
        solver: what is multiplied with the logarithms of the seconds, for each coefficient.
        leverages: the diagonal of the hat matrix.
    """

    rows: Sequence[Sequence[float]]
    solver: Sequence[Sequence[float]]
    leverages: Sequence[float]

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> Self | None:
        """Return the design of these rows; None if their coefficients cannot be told."""
        columns = list(zip(*rows, strict=True))
        gram = [[_product(one, other) for other in columns] for one in columns]
        for number, row in enumerate(gram):
            row[number] += _RIDGE
        inverse = _inverse(gram)
        if inverse is None:
            return None
        images = [[_product(line, row) for line in inverse] for row in rows]
        return cls(
            rows=rows,
            solver=list(zip(*images, strict=True)),
            leverages=[_product(*each) for each in zip(rows, images, strict=True)],
        )


def _product(one: Iterable[float], other: Iterable[float]) -> float:
    return math.fsum(map(float.__mul__, one, other))


def _fit(
    ranges: Mapping[str, tuple[float, float]],
    design: _Design,
    seconds: Sequence[float],
    fixed: float,
) -> ScalingLaw:
    logs = [math.log(max(_LEAST_SECONDS, each - fixed)) for each in seconds]
    found = [_product(line, logs) for line in design.solver]
    errors = []
    for row, leverage, log, actual in zip(
        design.rows, design.leverages, logs, seconds, strict=True
    ):
        left_out = log - (log - _product(found, row)) / max(1e-6, 1.0 - leverage)
        errors.append(abs(math.log(_seconds(fixed, left_out) / actual)))
    exponents = dict(zip(ranges, found[1:], strict=True))
    return ScalingLaw(
        fixed=fixed,
        constant=found[0],
        exponents=exponents,
        error=fmean(errors),
        ranges=ranges,
    )


def _seconds(fixed: float, power: float) -> float:
    """Return the seconds of a law, within what can be computed with."""
    return max(_LEAST_SECONDS, fixed + math.exp(min(power, 700.0)))


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """Return the inverse of a small matrix by elimination with pivots; None of a singular one."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda each: abs(rows[each][column]))
        if abs(rows[pivot][column]) < _SINGULAR:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [value / scale for value in rows[column]]
        for each in range(size):
            if each != column:
                factor = rows[each][column]
                rows[each] = [a - factor * b for a, b in zip(rows[each], rows[column], strict=True)]
    return [row[size:] for row in rows]
