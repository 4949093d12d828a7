"""Options for the limits of a group: parsing and display."""

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
    """Add the options of all limits to a command; ``changed`` applies them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def changed(before: Group) -> Group:
    """Return the group with the given options applied."""
    named = _named(click.get_current_context())
    return replace(before, **named)  # type: ignore[arg-type]  # each option names a field


def named_any() -> bool:
    """Return whether any of the options is given."""
    return bool(_named(click.get_current_context()))


def shown(group: Group) -> tuple[tuple[str, str], ...]:
    """Return the limits of a group as lines of text."""
    borrowing = "up to its max quota" if group.borrowing is None else str(group.borrowing)
    lending = "all of its guaranteed quota" if group.lending is None else str(group.lending)
    return (
        ("Parent group", group.parent or "none"),
        ("Max quota", str(group.max_devices)),
        ("Max per member", str(group.max_devices_per_user)),
        ("Max time limit", span(group.max_seconds)),
        ("Idle warning after", span(group.idle_seconds) if group.idle_seconds else "never"),
        ("Guaranteed quota", str(group.guaranteed)),
        ("Borrows", borrowing),
        ("Lends", lending),
        ("Weight", f"{group.weight:g}"),
        ("Models", "all" if group.models is None else ", ".join(sorted(group.models))),
        ("Sessions per member", "any" if group.max_sessions is None else str(group.max_sessions)),
        ("Budget", budget_text(group.budget)),
        ("Sessions may borrow", "yes" if group.sessions_borrow else "no"),
        ("Programs", "on" if group.programs else "off"),
    )


def span(seconds: int) -> str:
    for unit, size in reversed(_UNITS.items()):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


# -- parsing ----------------------------------------------------------------------------------


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
    """Return a parser that also accepts a word, which means None."""

    def parse(text: str) -> object:
        if text == word:
            return None
        try:
            return read(text)
        except InvalidInput as error:
            raise InvalidInput(error.message, accepted=f"{error.accepted} Or {word!r}.") from None

    return parse


def _weight(text: str) -> object:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < inf:
        raise InvalidInput(f"Invalid weight: {text[:40]!r}.", accepted="Give a number above 0.")
    return weight


def _sessions(text: str) -> object:
    try:
        return parsers.devices(text)
    except InvalidInput as error:
        message = f"Invalid number of sessions: {text[:40]!r}."
        raise InvalidInput(message, accepted=error.accepted) from None


def _models(text: str) -> object:
    named = frozenset(filter(None, (name.strip() for name in text.split(","))))
    return None if named in ({"all"}, frozenset()) else named


def _span(text: str) -> object:
    """Parse a duration to seconds."""
    seconds = parsers.seconds(text)
    if seconds > _LONGEST:
        raise InvalidInput(f"{text!r} is longer than a year.")
    return seconds


def _budget(text: str) -> object:
    found = parsers.budget(text)
    return Budget(device_seconds=found.device_seconds, period=Period(found.period))


_OR_NONE = _or("none", _budget)
TEXT_PARSERS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {"max_seconds": _span, "budget": _OR_NONE}
)
"""Limits that users write as text, and their parsers."""


def budget_text(budget: Budget | None) -> str:
    return "none" if budget is None else parsers.budget_text(budget.device_seconds, budget.period)


def _flag(flags: str, field: str, help_: str) -> Callable[[F], F]:
    def note(context: click.Context, parameter: click.Parameter, value: bool | None) -> None:
        if value is not None:
            _named(context)[field] = value

    return click.option(flags, default=None, expose_value=False, callback=note, help=help_)


_OPTIONS: tuple[Callable[[Callable[..., object]], Callable[..., object]], ...] = (
    _option(
        *("--parent", "parent", "GROUP", lambda text: text or None),
        "Parent group, whose limits also apply; '' for none.",
    ),
    _option(
        *("--max-devices", "max_devices", "N", parsers.devices),
        "Max quota: devices that all members use at the same time.",
    ),
    _option(
        *("--max-devices-per-user", "max_devices_per_user", "N", parsers.devices),
        "Devices that one member uses at the same time.",
    ),
    _option(
        *("--max-time", "max_seconds", "SPAN", _span),
        f"Max time limit: {parsers.TIME_HELP}.",
    ),
    _option(
        *("--idle", "idle_seconds", "SPAN", lambda text: 0 if text == "0" else _span(text)),
        "Idle time after which a session with devices is warned and then stopped; 0 for never.",
    ),
    _option(
        *("--guaranteed", "guaranteed", "N", parsers.devices),
        "Guaranteed quota: devices that the group can always reclaim from borrowers.",
    ),
    _option(
        *("--borrow", "borrowing", "N|any", _or("any", parsers.devices)),
        "Devices that it may borrow beyond its guaranteed quota; 'any': up to its max quota.",
    ),
    _option(
        *("--lend", "lending", "N|all", _or("all", parsers.devices)),
        "Devices of its guaranteed quota that other groups may borrow.",
    ),
    _option(
        *("--weight", "weight", "X", _weight),
        "Its fair share relative to its sibling groups; the default is 1.",
    ),
    _option(
        *("--models", "models", "NAME,…|all", _models),
        "Device models that it may use, comma-separated.",
    ),
    _option(
        *("--max-sessions", "max_sessions", "N|any", _or("any", _sessions)),
        "Sessions with devices that one member has at the same time.",
    ),
    _option(
        *("--budget", "budget", "HOURS/PERIOD|none", _OR_NONE),
        "Device-hours that it and its subgroups may use per term or week: 300h/term.",
    ),
    _flag(
        "--sessions-borrow/--no-sessions-borrow",
        "sessions_borrow",
        "Whether sessions, which are never preempted, may borrow devices of the guaranteed "
        "quotas of other groups. By default they use only the group's own guaranteed quota and "
        "devices without a guarantee.",
    ),
    _flag(
        "--programs/--no-programs",
        "programs",
        "Whether members may create programs that submit jobs to this group, each with a budget "
        "and a token of its own. Those of its teachers always may; by default no others.",
    ),
)
