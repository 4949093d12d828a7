"""Plots of the trials of a sweep as plain values: parallel coordinates, and the best so far.

A page and a widget draw the same. Parallel coordinates have one axis for each parameter and a last
one for the objective; each trial is a line through its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final

from ...schemas.sweeps import TrialOut, TrialsOut
from ..space import GridSpace, ListSpace, RandomSpace, SearchSpace, Space, ValueRange
from ..trials import Scalar, value_key, value_text

MOST_LINES: Final = 200
MOST_AXES: Final = 9
"""Parameters; the axis of the objective comes on top."""
_MOST_STEPS: Final = 20
_MOST_TICKS: Final = 8
_BETWEEN_TICKS: Final = 0.07
_LOGARITHMIC_FROM: Final = 100.0
_LONGEST: Final = 14
_DEFAULT: Final = "\0default"
"""In place of a value that a trial does not set."""


class AxisScale(StrEnum):
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    STEPS = "steps"
    """One position for each value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTick:
    """A labelled position: 0 for the lower end, 1 for the upper one."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelAxis:
    name: str
    scale: AxisScale
    ticks: Sequence[AxisTick]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLine:
    """The positions of a trial on the axes; None where it keeps the default."""

    number: int
    points: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCoordinates:
    """The lines of the trials that have reported the objective.

    Attributes:
        lines: without the best one.
        about: the same as text.
        note: how many trials and parameters are not drawn, as sentences.
    """

    axes: Sequence[ParallelAxis]
    lines: Sequence[TrialLine]
    best: TrialLine
    about: str
    note: str


def logarithmic_parameters(space: Space) -> list[str]:
    """Return the parameters that a logarithmic axis suits.

    These are the ranges with a logarithmic distribution, and the positive values of a grid or list
    of which the largest is at least 100 times the smallest.
    """
    match space:
        case RandomSpace() | SearchSpace():
            return [
                name
                for name, given in space.parameters.items()
                if isinstance(given, ValueRange) and given.logarithmic
            ]
        case GridSpace():
            values = {name: list(each) for name, each in space.values.items()}
        case ListSpace():
            values = {}
            for entry in space.entries:
                for name, value in entry.items():
                    values.setdefault(name, []).append(value)
    return [name for name, each in values.items() if _spans_magnitudes(each)]


def _spans_magnitudes(values: Sequence[Scalar]) -> bool:
    numbers = _numbers(values)
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= _LOGARITHMIC_FROM


def _numbers(values: Iterable[Scalar]) -> list[float]:
    """Return the values if all of them are numbers, else none."""
    found = list[float]()
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int | float):
            return []
        found.append(float(each))
    return found


def _with_objective(found: TrialsOut) -> list[TrialOut]:
    """Return the trials that have succeeded with an objective."""
    return [
        trial
        for trial in found.trials
        if trial.state == "succeeded" and trial.reported.get(found.objective) is not None
    ]


def _value(trial: TrialOut, objective: str) -> float:
    value = trial.reported[objective]
    assert value is not None  # one of those with an objective
    return value


def best_so_far(found: TrialsOut) -> list[float]:
    """Return the best objective after each trial that has one, in the order of their ends."""
    choose = max if found.maximize else min
    ended = sorted(_with_objective(found), key=lambda each: (each.at or 0.0, each.number))
    return list(accumulate((_value(each, found.objective) for each in ended), choose))


def parallel_coordinates(found: TrialsOut) -> ParallelCoordinates | None:
    """Return the plot; None if fewer than two trials, or no parameters, can be compared.

    Of more than ``MOST_LINES`` trials every n-th in the order of their objective is drawn.
    """
    sign = -1.0 if found.maximize else 1.0
    trials = sorted(
        _with_objective(found),
        key=lambda each: (sign * _value(each, found.objective), each.number),
    )
    every = -(-len(trials) // MOST_LINES)
    names = [name for name in found.parameters if _differs(name, trials)]
    if len(trials) < 2 or not names:  # noqa: PLR2004  # lines that can be compared
        return None
    drawn = trials[::every]
    plotted = [
        _axis(name, [_values(trial).get(name, _DEFAULT) for trial in drawn], found.logarithmic)
        for name in names[:MOST_AXES]
    ]
    plotted.append(_axis(found.objective, [_value(trial, found.objective) for trial in drawn], ()))
    axes = [axis for axis, _ in plotted]
    points = zip(*(column for _, column in plotted), strict=True)
    lines = [
        TrialLine(number=trial.number, points=each)
        for trial, each in zip(drawn, points, strict=True)
    ]
    return ParallelCoordinates(
        axes=axes,
        lines=lines[1:],
        best=lines[0],
        about=_about(axes, drawn[0], len(drawn)),
        note=_note(len(drawn), len(trials), names[MOST_AXES:]),
    )


def _values(trial: TrialOut) -> Mapping[str, Scalar]:
    return trial.values  # type: ignore[return-value]  # a space has no lists


def _differs(name: str, trials: Sequence[TrialOut]) -> bool:
    keys = (value_key(_values(each).get(name, _DEFAULT)) for each in trials)
    first = next(keys, None)
    return any(key != first for key in keys)


def _axis(
    name: str, values: Sequence[Scalar], logarithmic: Sequence[str]
) -> tuple[ParallelAxis, Sequence[float | None]]:
    """Return an axis, and the position of each value on it."""
    given = {value_key(value): value for value in values if value is not _DEFAULT}
    numbers = _numbers(given.values())
    if not numbers:
        axis, at = _steps(name, given)
    else:
        axis, at = _scale(name, given, numbers, logarithmic=name in logarithmic)
    return axis, [at.get(value_key(value)) if value is not _DEFAULT else None for value in values]


def _scale(
    name: str, given: Mapping[str, Scalar], numbers: Sequence[float], *, logarithmic: bool
) -> tuple[ParallelAxis, Mapping[str, float]]:
    """Return an axis of numbers, and the positions of the values by their keys."""
    is_logarithmic = logarithmic and min(numbers) > 0
    place = math.log10 if is_logarithmic else float
    low, high = place(min(numbers)), place(max(numbers))
    span = high / 2 - low / 2  # half: the distance of two large numbers may be infinite

    def position(value: float) -> float:
        return round((place(value) / 2 - low / 2) / span, 4) if span else 0.5

    distinct = sorted(set(numbers))
    ticks = list[AxisTick]()
    between = distinct[1:-1] if len(distinct) <= _MOST_TICKS else []
    for value in [distinct[0], distinct[-1], *between]:
        at = position(value)
        if all(abs(at - each.at) >= _BETWEEN_TICKS for each in ticks):
            ticks.append(AxisTick(at=at, text=f"{value:.4g}"))
    scale = AxisScale.LOGARITHMIC if is_logarithmic else AxisScale.LINEAR
    axis = ParallelAxis(name=name, scale=scale, ticks=ticks)
    return axis, {key: position(value) for key, value in zip(given, numbers, strict=True)}


def _steps(name: str, given: Mapping[str, Scalar]) -> tuple[ParallelAxis, Mapping[str, float]]:
    """Return an axis with a step for each value, and the positions of the values."""
    keys = sorted(given)
    at = {key: round(number / max(1, len(keys) - 1), 4) for number, key in enumerate(keys)}
    labelled = keys if len(keys) <= _MOST_STEPS else [keys[0], keys[-1]]
    ticks = [AxisTick(at=at[key], text=_short(value_text(given[key]))) for key in labelled]
    return ParallelAxis(name=name, scale=AxisScale.STEPS, ticks=ticks), at


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _about(axes: Sequence[ParallelAxis], best: TrialOut, drawn: int) -> str:
    *parameters, objective = axes
    scales = ", ".join(map(_scale_text, parameters))
    values = _values(best)
    told = [
        f"{axis.name} = {value_text(values[axis.name])}"
        for axis in parameters
        if axis.name in values
    ]
    value = best.reported[objective.name]
    told.append(f"{objective.name} = {value:.6g}")
    return (
        f"Parallel coordinates of {drawn} trials over {scales}, and {_scale_text(objective)}. "
        f"The best one, trial {best.number}, has {', '.join(told)}."
    )


def _scale_text(axis: ParallelAxis) -> str:
    if axis.scale is AxisScale.STEPS:
        return f"{axis.name} ({', '.join(tick.text for tick in axis.ticks)})"
    low, high = axis.ticks[0].text, axis.ticks[min(1, len(axis.ticks) - 1)].text
    logarithmic = ", logarithmic" if axis.scale is AxisScale.LOGARITHMIC else ""
    return f"{axis.name} ({low} to {high}{logarithmic})"


def _note(drawn: int, trials: int, left_out: Sequence[str]) -> str:
    sentences = list[str]()
    if drawn < trials:
        sentences.append(
            f"Drawn are {drawn} of {trials:,} trials, evenly chosen from the best to the worst."
        )
    if left_out:
        sentences.append(f"Without an axis: {', '.join(left_out)}.")
    return " ".join(sentences)
