"""Parse text that users type: durations, times, memory, budgets, parameters, labels, notebooks."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import JsonValue

from ..errors import InvalidInput, TooLarge
from . import LATEST, LONGEST, MAX_NOTEBOOK_BYTES, MODEL_LENGTH, SCRIPT, NotebookIn
from .base import NO_PARTS, is_part
from .calendar import BudgetIn

TIME_HELP = "30m, 2h, 1h30m, 90s, 1:30:00; a bare number is minutes"
MOMENT_HELP = (
    "a duration such as 30m, 2h, 1h30m, or a date and time such as 2026-11-22 18:00 or "
    "2026-11-22T18:00+01:00"
)
MOST_DEVICES = 100_000
ANY_MODEL = "any"
"""The name that stands for devices of any model."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ Tt]+[0-9]")
_UNITS = re.compile(
    r"(?:(?P<d>\d+)d)?\s*(?:(?P<h>\d+)h)?\s*(?:(?P<m>\d+)m(?:in)?)?\s*(?:(?P<s>\d+)s)?"
)
MEMORY_HELP = "8GiB, 512MiB, 1.5GiB"
_MEMORY = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[kmgt](?:i?b)?)", re.IGNORECASE)
_CLOCK = re.compile(r"(?P<h>\d+):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST_DIGITS = 100
"""Maximum length of a duration or size; Python refuses to parse integers of 4,300 digits."""
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NOTEBOOK = "Give an .ipynb file as Jupyter writes it, or a Python script (.py)."
_PYTHON = {"True": True, "False": False, "None": None}


def seconds(text: str) -> int:
    """Parse ``30m``, ``2h``, ``1h30m``, ``90s``, ``1:30:00``; a bare number is minutes.

    Raises:
        InvalidInput: the text is none of these, not above zero, or longer than ``LONGEST``.
    """
    given = text.strip().lower()
    if given.isascii() and given.isdigit():
        given += "m"
    found = len(given) <= _MOST_DIGITS and (_CLOCK.fullmatch(given) or _UNITS.fullmatch(given))
    parts = found.groupdict() if found and given else {}
    total = sum(int(number) * _SECONDS[unit] for unit, number in parts.items() if number)
    if total <= 0:
        raise InvalidInput(f"Invalid duration: {text[:40]!r}.", accepted=f"Accepted: {TIME_HELP}.")
    if total > LONGEST:
        raise InvalidInput(
            f"The duration {text[:40]!r} is longer than 100 years.",
            accepted=f"Accepted: {TIME_HELP}.",
        )
    return total


def model(text: str) -> str | None:
    """Parse a device model; ``any`` is None.

    Raises:
        InvalidInput: the name is empty or too long.
    """
    name = text.strip()
    if not 0 < len(name) <= MODEL_LENGTH:
        raise InvalidInput(
            f"Unknown device model: {text[:40]!r}.",
            accepted=f"Give {ANY_MODEL}, or a model that `carrel pool` shows.",
            field="model",
        )
    return None if name == ANY_MODEL else name


def moment(text: str, now: float, zone: tzinfo | None = None) -> float:
    """Parse a time: a duration from now, or a date and time.

    A time without an offset is in ``zone``, by default the zone of this machine.

    Raises:
        InvalidInput: the text is neither.
    """
    given = text.strip()
    try:
        if _DATE.match(given):
            found = datetime.fromisoformat(given)
            at = (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
        else:
            # Refuse "18:00": as a duration it is 18 hours, but it probably means the time of day.
            at = now + seconds(given.replace(":", "?"))
    except (ValueError, OverflowError, OSError, InvalidInput):
        raise InvalidInput(
            f"Invalid time: {text[:40]!r}.", accepted=f"Accepted: {MOMENT_HELP}."
        ) from None
    return check_moment(at, text, f"Accepted: {MOMENT_HELP}.")


def check_moment(at: float, text: str, accepted: str) -> float:
    """Return the time. Raises InvalidInput if it is before 1970 or after ``LATEST``."""
    if not 0 <= at <= LATEST:
        raise InvalidInput(
            f"The time {text[:40]!r} is not between the years 1970 and 2999.", accepted=accepted
        )
    return at


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name. Raises InvalidInput with the field ``zone``."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"There is no time zone {name[:80]!r}.",
            accepted="A name such as Europe/Berlin, or UTC.",
            field="zone",
        ) from None


def day(text: str) -> float:
    """Return the start of a day (``2026-10-01``) in UTC, as in the ledger.

    Raises:
        InvalidInput: there is no such day.
    """
    try:
        found = datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        found = None
    if found is None or found.timestamp() > LATEST:
        raise InvalidInput(
            f"Invalid date: {text[:40]!r}.", accepted="Give a date such as 2026-10-01."
        )
    return found.timestamp()


def month(text: str) -> tuple[float, float]:
    """Return the start of a month (``2026-10``) and of the next one, in UTC.

    Raises:
        InvalidInput: there is no such month.
    """
    try:
        found = datetime.strptime(text.strip(), "%Y-%m").replace(tzinfo=UTC)
        following = (found + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"Invalid month: {text[:40]!r}.", accepted="Give a month such as 2026-10."
        ) from None
    if not 0 <= found.timestamp() < following.timestamp() <= LATEST:
        raise InvalidInput(
            f"Invalid month: {text[:40]!r}.", accepted="Give a month from 1970-01 on."
        )
    return found.timestamp(), following.timestamp()


def devices(text: str, *, least: int = 0) -> int:
    """Parse a number of devices. Raises InvalidInput."""
    given = text.strip()
    if not (given.isascii() and given.isdigit()) or not least <= int(given[:9]) <= MOST_DEVICES:
        why = f" {NO_PARTS}" if is_part(given) else ""
        raise InvalidInput(
            f"Invalid number of devices: {text[:40]!r}.{why}",
            accepted=f"Give a whole number from {least} to {MOST_DEVICES:,}.",
        )
    return int(given)


def budget(text: str) -> BudgetIn:
    """Parse a budget, ``300h/term`` or ``20h/week``. Raises InvalidInput."""
    amount, _, period = text.replace(" ", "").partition("/")
    try:
        hours = float(amount.removesuffix("h"))
        return BudgetIn.model_validate({"device_seconds": hours * 3600, "period": period})
    except ValueError:
        raise InvalidInput(
            f"Invalid budget: {text[:40]!r}.",
            accepted="Give device-hours per term or week, such as 300h/term or 20h/week.",
        ) from None


def budget_text(device_seconds: float, period: str) -> str:
    """Format a budget: ``300h/term``."""
    return f"{device_seconds / 3600:g}h/{period}"


def memory_bytes(text: str) -> int:
    """Parse ``8GiB``, ``512MiB``; ``8G`` means the same as ``8GiB``, and ``8GB`` is decimal.

    Raises:
        InvalidInput: the text is none of these, or not above zero.
    """
    found = _MEMORY.fullmatch(text.strip())
    if found and len(text) <= _MOST_DIGITS:
        unit = found["unit"].lower()
        step = 1000 if unit.endswith("b") and "i" not in unit else 1024
        size = int(float(found["number"]) * step ** (1 + "kmgt".index(unit[0])))
        if size > 0:
            return size
    raise InvalidInput(
        f"Invalid amount of memory: {text[:40]!r}.", accepted=f"Accepted: {MEMORY_HELP}."
    )


def parameter(text: str) -> JsonValue:
    """Parse a number, true, false, null or quoted text; return anything else as text.

    Numbers are those of Python, such as ``.5``, ``1.`` and ``+5``. Numbers with leading zeros
    (``007``) are identifiers and stay text, and so do NaN and Infinity.

    Raises:
        InvalidInput: the number is larger than JSON can represent.
    """
    if text in _PYTHON:
        return _PYTHON[text]
    if _NUMBER.fullmatch(text):
        return _number(text)
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str | bool) or value is None else text


def _number(text: str) -> int | float:
    try:
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
        finite = isfinite(value)
    except (ValueError, OverflowError):  # Python reads integers of at most 4,300 digits
        finite = False
    if not finite:
        raise InvalidInput(
            f"The number {text[:40]!r} is too large.",
            accepted="Give a number below 1e308, or text with --raw.",
        )
    return value


def label(text: str) -> tuple[str, str]:
    """Parse ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise InvalidInput(f"Invalid label: {text!r}.", accepted="Give a label as KEY=VALUE.")
    return key.strip(), value


def notebook(path: Path) -> NotebookIn:
    """Read a notebook or a Python script to submit; the service validates it further.

    Raises:
        InvalidInput: the file does not exist, or is neither a notebook nor a text.
        TooLarge: it is larger than the service accepts.
    """
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= MAX_NOTEBOOK_BYTES else b""
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}.",
            accepted="Give the path of an .ipynb or .py file.",
        ) from error
    if size > MAX_NOTEBOOK_BYTES:
        raise TooLarge(
            f"{path} has {size / 2**20:.0f} MiB.",
            accepted=f"Notebooks can have up to {MAX_NOTEBOOK_BYTES // 2**20} MiB; "
            "clearing the outputs often helps.",
        )
    read = _text if path.suffix == SCRIPT else _text_of_notebook
    return NotebookIn(name=path.name, content=read(path, content))


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text (byte {error.start}).",
            accepted="A notebook or a Python script, saved as UTF-8.",
        ) from error


def _text_of_notebook(path: Path, content: bytes) -> str:
    text = _text(path, content)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{path} is not JSON: {error.msg} (line {error.lineno}).",
            accepted=_NOTEBOOK,
        ) from error
    except RecursionError:
        raise InvalidInput(f"{path} is nested too deeply.", accepted=_NOTEBOOK) from None
    # Before format 4, the cells were in worksheets.
    cells = document.get("cells", document.get("worksheets")) if isinstance(document, dict) else 0
    if not isinstance(cells, list):
        raise InvalidInput(
            f"{path} is JSON, but not a notebook: it has no list of cells.",
            accepted=_NOTEBOOK,
        )
    return text
