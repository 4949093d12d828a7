"""Schedules of hyper-parameters: piecewise constant functions of the training step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePiece:
    """Values that are constant from a step on.

    Attributes:
        first: the first step with these values.
        values: of all parameters.
    """

    first: int
    values: Mapping[str, Value]

    @property
    def key(self) -> str:
        """A text that is the same only for identical values: 1, 1.0 and True differ."""
        return repr(sorted((name, type(it).__name__, it) for name, it in self.values.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSchedule:
    """The values of one trial.

    Attributes:
        parts: per parameter its values, each with the step from which it holds.
        pieces: the same for all parameters together; two in a row differ.
    """

    parts: Mapping[str, tuple[tuple[int, Value], ...]]
    pieces: tuple[SchedulePiece, ...]

    def columns(self) -> dict[str, Value]:
        """Return a value per parameter: that of a constant one, else a text of its parts."""
        return {
            name: parts[0][1]
            if len(parts) == 1
            else ", ".join(f"{value}" if not at else f"{value} from {at}" for at, value in parts)
            for name, parts in self.parts.items()
        }


def schedules(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the schedules of all combinations of choices, for ``carrel.stages``.

    >>> decays = [[(0, 0.1), (at, lr)] for at in (50, 70) for lr in (0.01, 0.001)]
    >>> carrel.schedules(lr=[0.1, *decays], batch=[32, 64])  # 10 schedules

    Args:
        choices: per parameter its choices; each is one value for all steps, or a list of
            ``(step, value)`` pairs.

    Raises:
        ValueError: there is no parameter, or a parameter has no choices.
        TypeError: the choices of a parameter are not a list.
    """
    for name, given in choices.items():
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise TypeError(f"The choices of {name} are a list, not {given!r}.")
        if not given:
            raise ValueError(f"The list of choices of {name} is empty.")
    if not choices:
        raise ValueError("Name at least one parameter, such as schedules(lr=[0.1, 0.01]).")
    return [
        dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())
    ]


def step_schedule(given: Mapping[str, Any], number: int, steps: int) -> StepSchedule:
    """Check a schedule.

    Args:
        given: per parameter a value, or a list of ``(step, value)`` pairs.
        number: of the schedule among those given, from 1, for messages.
        steps: of the trial; each piece begins before its end.

    Raises:
        TypeError, ValueError: it is malformed; the message says what is accepted.
    """
    where = f"Schedule {number}"
    if not isinstance(given, Mapping):
        raise TypeError(
            f'{where} is a dict of parameters, such as {{"lr": [(0, 0.1), (50, 0.01)]}}, '
            f"not {type(given).__name__}."
        )
    if not given:
        raise ValueError(f"{where} has no parameters.")
    parts = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"{where}: the name of a parameter is text, not {name!r}.")
        parts[name] = _parts(value, f"{where}, {name}", steps)
    return StepSchedule(parts=parts, pieces=_pieces(parts))


def _parts(given: Any, where: str, steps: int) -> tuple[tuple[int, Value], ...]:
    if not isinstance(given, list | tuple):
        return ((0, _scalar(given, where)),)
    found: list[tuple[int, Value]] = []
    for pair in given:
        if not isinstance(pair, list | tuple) or len(pair) != 2:  # noqa: PLR2004  # a pair
            raise TypeError(f"{where}: a list has (step, value) pairs, not {pair!r}.")
        first = _scalar(pair[0], where)
        if isinstance(first, bool) or not isinstance(first, int):
            raise TypeError(f"{where}: a step is a whole number, not {pair[0]!r}.")
        if not found and first != 0:
            raise ValueError(f"{where}: the first value begins at step 0, not at step {first}.")
        if found and first <= found[-1][0]:
            raise ValueError(
                f"{where}: steps increase from pair to pair; {first} follows {found[-1][0]}."
            )
        if first >= steps:
            raise ValueError(
                f"{where}: step {first} is beyond the last one; {steps} steps have the numbers 0 "
                f"to {steps - 1}."
            )
        found.append((first, _scalar(pair[1], where)))
    if not found:
        raise ValueError(f"{where}: the list of (step, value) pairs is empty.")
    return tuple(found)


def _scalar(given: Any, where: str) -> Value:
    value = given.item() if hasattr(given, "item") and getattr(given, "ndim", 0) == 0 else given
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError(f"{where}: NaN is not a value of a parameter.")
        return value
    raise TypeError(f"{where}: a value is a number, text, True, False or None, not {given!r}.")


def _pieces(parts: Mapping[str, tuple[tuple[int, Value], ...]]) -> tuple[SchedulePiece, ...]:
    found: list[SchedulePiece] = []
    changes = {name: dict(pairs) for name, pairs in parts.items()}
    values: dict[str, Value] = {}
    for first in sorted({at for pairs in parts.values() for at, _ in pairs}):
        values = values | {name: at[first] for name, at in changes.items() if first in at}
        piece = SchedulePiece(first=first, values=values)
        if not found or found[-1].key != piece.key:
            found.append(piece)
    return tuple(found)
