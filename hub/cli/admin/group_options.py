"""What a group's limits are called on the command line, and how they are read and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import TypeVar

import click

from ...errors import InvalidInput
from ...scheduling.model.snapshot import Budget, Group, Period
from ...schemas import parsers

F = TypeVar("F", bound=Callable[..., object])

_NAMED = "carrel.group"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 366 * 86400


def limit_options(function: F) -> F:
    """The options of every limit; what is given of them waits for ``changed``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def changed(before: Group) -> Group:
    """The group with the options of this call; what was not given stays as it is."""
    named = _named(click.get_current_context())
    return replace(before, **named)  # type: ignore[arg-type]  # each option names a field


def named_any() -> bool:
    """Whether this call gives any of the options."""
    return bool(_named(click.get_current_context()))


def shown(group: Group) -> tuple[tuple[str, str], ...]:
    """Every limit of a group as lines for people."""
    borrowing = "up to its maximum" if group.borrowing is None else str(group.borrowing)
    lending = "all of its guarantee" if group.lending is None else str(group.lending)
    return (
        ("Above it", group.parent or "nothing"),
        ("Devices at one time", str(group.max_devices)),
        ("Devices per member", str(group.max_devices_per_user)),
        ("Longest time limit", span(group.max_seconds)),
        ("Idle time", span(group.idle_seconds) if group.idle_seconds else "any"),
        ("Guaranteed devices", str(group.guaranteed)),
        ("Borrows", borrowing),
        ("Lends", lending),
        ("Weight", f"{group.weight:g}"),
        ("Models", "all" if group.models is None else ", ".join(sorted(group.models))),
        ("Sessions per member", "any" if group.max_sessions is None else str(group.max_sessions)),
        ("Budget", budget_text(group.budget)),
        ("Sessions may borrow", "yes" if group.sessions_borrow else "no"),
    )


def span(seconds: int) -> str:
    for unit, size in reversed(_UNITS.items()):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


# -- reading ----------------------------------------------------------------------------------


def _named(context: click.Context) -> dict[str, object]:
    found: dict[str, object] = context.meta.setdefault(_NAMED, {})
    return found


def _option(
    flag: str, field: str, metavar: str, read: Callable[[str], object], help_: str
) -> Callable[[F], F]:
    def note(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            try:
                _named(context)[field] = read(value)
            except InvalidInput as error:
                raise click.BadParameter(str(error)) from error

    return click.option(flag, metavar=metavar, expose_value=False, callback=note, help=help_)


def _or(word: str, read: Callable[[str], object]) -> Callable[[str], object]:
    """What the word stands for is None."""

    def either(text: str) -> object:
        if text == word:
            return None
        try:
            return read(text)
        except InvalidInput as error:
            raise InvalidInput(error.message, accepted=f"{error.accepted} Or {word!r}.") from None

    return either


def _weight(text: str) -> object:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < inf:
        raise InvalidInput(f"{text[:40]!r} is no weight.", accepted="A number above 0.")
    return weight


def _sessions(text: str) -> object:
    try:
        return parsers.devices(text)
    except InvalidInput as error:
        message = f"{text[:40]!r} is no number of sessions."
        raise InvalidInput(message, accepted=error.accepted) from None


def _models(text: str) -> object:
    named = frozenset(filter(None, (name.strip() for name in text.split(","))))
    return None if named in ({"all"}, frozenset()) else named


def _span(text: str) -> object:
    """As everywhere on the command line, in seconds."""
    seconds = parsers.seconds(text)
    if seconds > _LONGEST:
        raise InvalidInput(f"{text!r} is longer than a year.")
    return seconds


def _budget(text: str) -> object:
    found = parsers.budget(text)
    return Budget(device_seconds=found.device_seconds, period=Period(found.period))


_OR_NONE = _or("none", _budget)
WRITTEN: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {"max_seconds": _span, "budget": _OR_NONE}
)
"""Limits that are text wherever somebody writes them, and how they are read."""


def budget_text(budget: Budget | None) -> str:
    return "none" if budget is None else parsers.budget_text(budget.device_seconds, budget.period)


def _flag() -> Callable[[F], F]:
    def note(context: click.Context, parameter: click.Parameter, value: bool | None) -> None:
        if value is not None:
            _named(context)["sessions_borrow"] = value

    return click.option(
        "--sessions-borrow/--no-sessions-borrow",
        default=None,
        expose_value=False,
        callback=note,
        help="Whether sessions, which are never preempted, may use devices that another group "
        "is guaranteed. Without it a session has at most what the group is guaranteed and what "
        "nobody is.",
    )


_OPTIONS: tuple[Callable[[Callable[..., object]], Callable[..., object]], ...] = (
    _option(
        *("--parent", "parent", "GROUP", lambda text: text or None),
        "Group above, whose limits bind too; '' for none.",
    ),
    _option(
        *("--max-devices", "max_devices", "N", parsers.devices),
        "Devices that all members together hold at one time.",
    ),
    _option(
        *("--max-devices-per-user", "max_devices_per_user", "N", parsers.devices),
        "Devices that one member holds at one time.",
    ),
    _option(
        *("--max-time", "max_seconds", "SPAN", _span),
        f"Longest time limit: {parsers.TIME_HELP}.",
    ),
    _option(
        *("--idle", "idle_seconds", "SPAN", lambda text: 0 if text == "0" else _span(text)),
        "After how long without work a session with devices is warned and then stopped; "
        "0 for never.",
    ),
    _option(
        *("--guaranteed", "guaranteed", "N", parsers.devices),
        "Devices that it has back when it asks for them, whoever uses them meanwhile.",
    ),
    _option(
        *("--borrow", "borrowing", "N|any", _or("any", parsers.devices)),
        "Devices that it may hold above its guarantee; 'any': up to its maximum.",
    ),
    _option(
        *("--lend", "lending", "N|all", _or("all", parsers.devices)),
        "Devices of its guarantee that others may use while it does not.",
    ),
    _option(
        *("--weight", "weight", "X", _weight),
        "Its part of what the groups beside it share; 1 is the ordinary one.",
    ),
    _option(
        *("--models", "models", "NAME,…|all", _models),
        "Device models that it is given, with commas between them.",
    ),
    _option(
        *("--max-sessions", "max_sessions", "N|any", _or("any", _sessions)),
        "Sessions with devices that one member holds at one time.",
    ),
    _option(
        *("--budget", "budget", "HOURS/PERIOD|none", _OR_NONE),
        "Device-hours that it and the groups below it may use in a term or a week: 300h/term.",
    ),
    _flag(),
)
