"""Parse spaces: the options of the command line, and the JSON of the API.

--grid lr=0.1,0.01 --grid depth=2,4        {"grid": {"lr": [0.1, 0.01], "depth": [2, 4]}}
--list '[{"lr": 0.1}, {"lr": 0.01}]'       {"list": [{"lr": 0.1}, {"lr": 0.01}]}
--random lr=log:1e-4..1e-1 --trials 20     {"random": {"lr": {"log": [1e-4, 1e-1]}},
  --seed 7                                  "trials": 20, "seed": 7}
--search lr=log:1e-4..1e-1 --trials 50     {"search": {"lr": {"log": [1e-4, 1e-1]}},
  --sampler tpe --prune asha                "trials": 50, "sampler": "tpe", "pruner": "asha"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from ..errors import InvalidInput
from ..records.json_value import parse_json
from ..schemas import parsers
from .space import (
    DEFAULT_SEED,
    Choice,
    GridSpace,
    ListSpace,
    Pruner,
    RandomSpace,
    Sampler,
    SearchSpace,
    Space,
    ValueRange,
)
from .trials import Scalar, check_count, checked_scalar

T = TypeVar("T")
Name = TypeVar("Name", bound=StrEnum)
GRID_HELP: Final = "lr=0.1,0.01"
RANDOM_HELP: Final = "lr=log:1e-4..1e-1, depth=2..8 or optimizer=adam,sgd"
_ONE_SPACE = "Give one of a grid, a list, random parameters and a search."
_SPACES: Final = {"grid", "list", "random", "search"}
_SAMPLED: Final = {"trials", "seed"}
_SEARCHED: Final = {*_SAMPLED, "sampler", "pruner"}
_SHOWN = 80
_LARGEST_SEED = 2**53 - 1


def space_from_options(
    *,
    grid: Sequence[str] = (),
    listed: str | None = None,
    sampled: Sequence[str] = (),
    searched: Sequence[str] = (),
    trials: int | None = None,
    seed: int | None = None,
    sampler: str | None = None,
    pruner: str | None = None,
) -> Space:
    """Return the space of options of the command line.

    Args:
        grid: texts such as ``lr=0.1,0.01``.
        listed: JSON, a list of objects.
        sampled, searched: texts such as ``lr=log:1e-4..1e-1``.
        trials: the number of samples, or of trials of the search.
        seed: of the samples; by default ``DEFAULT_SEED``.
        sampler, pruner: of the search.

    Raises:
        InvalidInput: an option is malformed, or they contradict each other.
    """
    given = (bool(grid), listed is not None, bool(sampled), bool(searched)).count(True)
    if given != 1:
        raise InvalidInput(
            "The sweep has more than one space."
            if given
            else "The parameters of the sweep are missing.",
            accepted="Give one of --grid, --list, --random and --search; all but --list can be "
            "repeated.",
        )
    if not (sampled or searched) and (trials is not None or seed is not None):
        raise InvalidInput(
            "Only random parameters and a search have a number of trials and a seed.",
            accepted="Omit --trials and --seed, or use --random or --search.",
        )
    if not searched and (sampler is not None or pruner is not None):
        raise InvalidInput(
            "Only a search has a sampler and a pruner.",
            accepted="Omit --sampler and --prune, or use --search.",
        )
    if grid:
        return GridSpace(_by_name(grid, _values, GRID_HELP))
    if listed is not None:
        try:
            return _list_space(parse_json(listed))
        except ValueError as error:
            raise InvalidInput(
                f"The list of trials is not JSON: {error}.", accepted=_LIST_HELP
            ) from error
    if trials is None:
        raise InvalidInput(
            "The number of trials is missing.",
            accepted="Give it with --trials, such as --trials 20.",
        )
    seed = DEFAULT_SEED if seed is None else seed
    parameters = _by_name(sampled or searched, _distribution, RANDOM_HELP)
    if sampled:
        return RandomSpace(parameters=parameters, count=trials, seed=seed)
    return SearchSpace(
        parameters=parameters,
        count=trials,
        seed=seed,
        sampler=_named(Sampler, sampler or Sampler.TPE, "sampler"),
        pruner=_named(Pruner, pruner or Pruner.NONE, "pruner"),
    )


_LIST_HELP = 'A list of objects, such as [{"lr": 0.1}, {"lr": 0.01}].'


def _by_name(texts: Sequence[str], parse: Callable[[str, str], T], example: str) -> Mapping[str, T]:
    found: dict[str, T] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        name = name.strip()
        if not (equals and name):
            raise InvalidInput(
                f"{text[:_SHOWN]!r} names no parameter.", accepted=f"Such as {example}."
            )
        if name in found:
            raise InvalidInput(
                f"The parameter {name} is given twice.",
                accepted="Give all its values together, separated by commas.",
            )
        found[name] = parse(name, rest)
    return found


def _values(name: str, text: str) -> Choice:
    if not text.strip():
        raise InvalidInput(f"{name} has no values.", accepted=f"Such as {name}=0.1,0.01.")
    return tuple(_value(name, part) for part in _parts(name, text))


def _parts(name: str, text: str) -> list[str]:
    """Split at commas outside of quotation marks."""
    parts: list[str] = []
    quoted = False
    for piece in text.split(","):
        if quoted:
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
        quoted = parts[-1].replace('\\"', "").count('"') % 2 == 1
    if quoted:
        raise InvalidInput(
            f"A quotation mark is missing in the values of {name}.",
            accepted=f"Such as {name}='\"a, b\",c', which are two texts.",
        )
    return parts


def _value(name: str, text: str) -> Scalar:
    if not text.strip():
        raise InvalidInput(
            f"{name} has an empty value.", accepted='Write an empty text as "", and null as null.'
        )
    return checked_scalar(name, parsers.parameter(text.strip()))


def _distribution(name: str, text: str) -> ValueRange | Choice:
    given = text.strip()
    logarithmic = given.startswith("log:")
    low, dots, high = given.removeprefix("log:").partition("..")
    if not dots:
        if logarithmic:
            raise _malformed_range(name, text)
        return _values(name, text)
    try:
        return _range(name, [parsers.parameter(each) for each in (low, high)], logarithmic)
    except TypeError:
        raise _malformed_range(name, text) from None


def _range(name: str, bounds: object, logarithmic: bool) -> ValueRange:
    """Return a range of two numbers. Raises TypeError."""
    match bounds:
        case [int() | float() as low, int() | float() as high] if not (
            isinstance(low, bool) or isinstance(high, bool)
        ):
            whole = isinstance(low, int) and isinstance(high, int)
            return ValueRange(low=low, high=high, logarithmic=logarithmic, whole=whole)
    raise TypeError(name)


def _malformed_range(name: str, text: str) -> InvalidInput:
    return InvalidInput(
        f"{text[:_SHOWN]!r} is not a range of {name}.",
        accepted=f"Two numbers, such as {name}=0.1..0.9 or {name}=log:1e-4..1e-1.",
    )


def space_from_json(value: object) -> Space:
    """Return the space of a JSON document; the opposite of ``as_json``. Raises InvalidInput."""
    if not isinstance(value, dict):
        raise InvalidInput("The space is not a JSON object.", accepted=_ONE_SPACE)
    spaces = _SPACES & set(value)
    allowed = _SEARCHED if "search" in spaces else _SAMPLED
    unknown = set(value) - _SPACES - allowed
    if unknown or len(spaces) != 1:
        said = f"The space has the field {min(unknown)[:_SHOWN]!r}." if unknown else ""
        raise InvalidInput(said or "The space is not one space.", accepted=_ONE_SPACE)
    if "grid" in value:
        grid = _object(value["grid"], "grid")
        return GridSpace({name: _choice(name, each) for name, each in grid.items()})
    if "list" in value:
        return _list_space(value["list"])
    (kind,) = spaces
    given = _object(value[kind], kind)
    parameters = {name: _json_distribution(name, each) for name, each in given.items()}
    count = check_count(_whole(value.get("trials"), "trials"))
    seed = _whole(value.get("seed", DEFAULT_SEED), "seed")
    if kind == "random":
        return RandomSpace(parameters=parameters, count=count, seed=seed)
    return SearchSpace(
        parameters=parameters,
        count=count,
        seed=seed,
        sampler=_named(Sampler, value.get("sampler", Sampler.TPE), "sampler"),
        pruner=_named(Pruner, value.get("pruner", Pruner.NONE), "pruner"),
    )


def _named(kind: type[Name], value: object, what: str) -> Name:
    """Return a sampler or a pruner by its name. Raises InvalidInput."""
    if isinstance(value, str) and value in list(kind):
        return kind(value)
    raise InvalidInput(
        f"The {what} {str(value)[:_SHOWN]!r} is not known.", accepted=f"One of {', '.join(kind)}."
    )


def _list_space(value: object) -> ListSpace:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InvalidInput("The list of trials is not a list of objects.", accepted=_LIST_HELP)
    return ListSpace(
        tuple({name: checked_scalar(name, each[name]) for name in each} for each in value)
    )


def _object(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise InvalidInput(
            f"The field {name!r} is not a JSON object.", accepted="Parameters with their values."
        )
    return value


def _choice(name: str, value: object) -> Choice:
    if not isinstance(value, list):
        raise InvalidInput(
            f"The values of {name} are not a list.", accepted='Such as {"lr": [0.1, 0.01]}.'
        )
    return tuple(checked_scalar(name, each) for each in value)


def _json_distribution(name: str, value: object) -> ValueRange | Choice:
    if isinstance(value, list):
        return _choice(name, value)
    try:
        match value:
            case {"log": bounds, **rest} if not rest:
                return _range(name, bounds, logarithmic=True)
            case {"uniform": bounds, **rest} if not rest:
                return _range(name, bounds, logarithmic=False)
    except TypeError:
        pass
    raise InvalidInput(
        f"The distribution of {name} is not known.",
        accepted='A list of values, {"uniform": [0, 1]} or {"log": [1e-4, 0.1]}.',
    )


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST_SEED:
        raise InvalidInput(f"The field {name!r} is not a whole number.", accepted="Such as 20.")
    return value
