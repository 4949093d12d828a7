"""Trials: numbered sets of parameter values, and what makes a value right for a parameter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..admission.parameters import FieldType
from ..errors import InvalidInput
from .notebook_cells import SweepNotebook, SweepParameter

Scalar: TypeAlias = "str | int | float | bool | None"

MOST_TRIALS: Final = 10_000
"""Max number of trials of one sweep."""
_SHOWN: Final = 40
_LARGEST = 1e308


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of the notebook.

    Attributes:
        number: from 1, in the order of the space.
        values: by parameter; the others keep the default of the notebook.
    """

    number: int
    values: Mapping[str, Scalar]


def optional_parameters(trials: Iterable[Trial]) -> frozenset[str]:
    """Return the parameters that are null in a trial."""
    return frozenset(
        name for trial in trials for name, value in trial.values.items() if value is None
    )


def value_key(value: Scalar) -> str:
    """Return a text that is the same only for identical values: 1, 1.0 and true differ."""
    return json.dumps(value)


def value_text(value: Scalar) -> str:
    """Return a value as a command line shows it: text without quotes, unless it needs them."""
    if isinstance(value, str) and value.isprintable() and not set(value) & set(' ,="'):
        return value
    return json.dumps(value, ensure_ascii=False)


def checked_scalar(name: str, value: object) -> Scalar:
    """Return a value if it is text, a finite number, true, false or null. Raises InvalidInput."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and -_LARGEST <= value <= _LARGEST:
        return value
    raise InvalidInput(
        f"{name} has the value {str(value)[:_SHOWN]}, which a sweep cannot have.",
        accepted="A value is text, a number, true, false or null.",
    )


def check_count(count: int) -> int:
    """Return a number of trials. Raises InvalidInput if it is below 1 or too large."""
    if count < 1:
        raise InvalidInput("A sweep needs at least one trial.", accepted=_bound())
    if count > MOST_TRIALS:
        raise InvalidInput(f"This sweep would have {count:,} trials.", accepted=_bound())
    return count


def _bound() -> str:
    return f"A sweep has from 1 to {MOST_TRIALS:,} trials."


def check_names(names: Iterable[str], notebook: SweepNotebook) -> None:
    """Raise InvalidInput if the notebook lacks a parameter; the message lists those it has."""
    unknown = [name for name in names if name not in notebook.parameters]
    if not unknown:
        return
    missing = ", ".join(name[:_SHOWN] for name in unknown)
    if not notebook.parameters:
        raise InvalidInput(
            f"{notebook.name} has no parameters, but {missing} was given.",
            accepted="Tag a cell of the notebook 'parameters' and assign defaults in it.",
        )
    raise InvalidInput(
        f"{notebook.name} has no parameter {missing}.",
        accepted=f"It has: {', '.join(notebook.parameters)}.",
    )


def check_value(parameter: SweepParameter, value: Scalar) -> None:
    """Raise InvalidInput if a value contradicts the type of a parameter.

    A default such as ``alpha = 1`` admits every number, and null; only ``alpha: int = 1`` insists
    on whole numbers.
    """
    if value is None and not parameter.annotated:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match parameter.field.type:
        case FieldType.WHOLE if parameter.annotated:
            fits, accepted = number and isinstance(value, int), "Give a whole number such as 10."
        case FieldType.WHOLE | FieldType.NUMBER:
            fits, accepted = number, "Give a number such as 0.05."
        case FieldType.YES_NO:
            fits, accepted = isinstance(value, bool), "Give true or false."
        case FieldType.TEXT:
            text = json.dumps(value_text(value))
            fits, accepted = isinstance(value, str), f"Write text in quotes, such as {text}."
        case _:
            return
    if not fits:
        raise InvalidInput(
            f"The value {value_text(value)[:_SHOWN]} does not fit {parameter.name}, which is "
            f"{_article(parameter.field.type)} in the notebook ({_declared(parameter)}).",
            accepted=accepted,
        )


def _article(kind: FieldType) -> str:
    return kind.value if kind in (FieldType.TEXT, FieldType.YES_NO) else f"a {kind.value}"


def _declared(parameter: SweepParameter) -> str:
    default = parameter.field.default[:_SHOWN]
    if not parameter.annotated:
        return f"{parameter.name} = {default}"
    return f"{parameter.name}: {_PYTHON_TYPES[parameter.field.type]} = {default}"


_PYTHON_TYPES = {
    FieldType.WHOLE: "int",
    FieldType.NUMBER: "float",
    FieldType.YES_NO: "bool",
    FieldType.TEXT: "str",
}
