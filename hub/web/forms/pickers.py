"""Fields of forms combined into the texts that the command line accepts, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ...errors import InvalidInput
from ...schemas import parsers

_NUMBER = re.compile(r"[0-9]{1,12}(?:[.,][0-9]{1,6})?")
_SPAN_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MEMORY_UNITS = ("MiB", "GiB")
_PERIODS = ("week", "term")
_MOST_SHOWN = 1000
"""Names to select from."""
_UNIT = "_unit"
"""Suffix of the name of the unit's field."""


def span(fields: Mapping[str, str], name: str) -> str:
    """Return the duration of two fields: ``2`` and ``h`` are ``2h``.

    A text with a unit of its own, such as ``1h30m``, stays, and so does an invalid one.
    """
    text, unit = _entries(fields, name)
    if not text or unit not in _SPAN_SECONDS:
        return text
    if not _NUMBER.fullmatch(text):
        return _with_unit(text, unit, parsers.seconds)
    number = text.replace(",", ".")
    if not float(number):
        return "0"
    whole = number.isdigit()
    return f"{number}{unit}" if whole else f"{round(float(number) * _SPAN_SECONDS[unit])}s"


def memory(fields: Mapping[str, str], name: str) -> str:
    """Return the size of two fields: ``8`` and ``GiB`` are ``8GiB``."""
    text, unit = _entries(fields, name)
    if not text or unit not in _MEMORY_UNITS:
        return text
    if _NUMBER.fullmatch(text):
        return f"{text.replace(',', '.')}{unit}"
    return _with_unit(text, unit, parsers.memory_bytes)


def budget(fields: Mapping[str, str], name: str) -> str:
    """Return the budget of two fields: ``300`` and ``term`` are ``300h/term``."""
    text, period = _entries(fields, name)
    if not text or "/" in text or period not in _PERIODS:
        return text
    return f"{text.replace(',', '.')}h/{period}" if _NUMBER.fullmatch(text) else f"{text}/{period}"


def _entries(fields: Mapping[str, str], name: str) -> tuple[str, str]:
    return fields.get(name, "").strip(), fields.get(name + _UNIT, "")


def _with_unit(text: str, unit: str, reader: Callable[[str], int]) -> str:
    """Return a text with its unit, so that it is shown with it again, unless it has its own."""
    try:
        reader(text)
    except InvalidInput:
        return f"{text} {unit}"
    return text


def chosen(fields: Mapping[str, str], name: str, split: Callable[[str], list[str]]) -> str:
    """Return the names that are selected (``NAME_1`` and so on), and the typed ones."""
    selected = [fields.get(f"{name}_{number}", "").strip() for number in range(1, _MOST_SHOWN + 1)]
    return ", ".join([*filter(None, selected), *split(fields.get(name, ""))])


def choices(text: str, known: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the names to select from, those of the text first, and whether they are in it."""
    names = dict.fromkeys(split_commas(text), True)
    more = [name for name in known if name not in names]
    return [*names.items(), *((name, False) for name in more)][:_MOST_SHOWN]


def split_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def shown_span(seconds: int) -> str:
    """Format a duration in its largest whole unit: ``2h``, ``90m``; ``0`` for none."""
    if seconds == 0:
        return "0"
    units = reversed(_SPAN_SECONDS.items())
    unit, size = next((unit, size) for unit, size in units if seconds % size == 0)
    return f"{seconds // size}{unit}"


def span_parts(text: str, unit: str = "h") -> tuple[str, str]:
    """Return the number and the unit of a duration, for its two fields.

    ``unit``: where it has none.
    """
    if text and text != "0":
        with suppress(InvalidInput):
            text = shown_span(parsers.seconds(text))
    return _parts(text, r"[0-9]+|.+ ", "[smhd]", unit)


def memory_parts(text: str) -> tuple[str, str]:
    """Return the number and the unit of a size, for its two fields."""
    return _parts(text, r"[0-9.]+|.+ ", "|".join(_MEMORY_UNITS), "GiB")


def budget_parts(text: str) -> tuple[str, str]:
    """Return the device-hours and the period of a budget, for its two fields."""
    amount, _, period = text.rpartition("/")
    if period not in _PERIODS:
        return text, "term"
    number = amount.removesuffix("h")
    return number if _NUMBER.fullmatch(number) else amount, period


def _parts(text: str, number: str, units: str, default: str) -> tuple[str, str]:
    found = re.fullmatch(f"(?P<number>{number})(?P<unit>{units})", text)
    return (found["number"].strip(), found["unit"]) if found else (text, default)
