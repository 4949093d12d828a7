"""Format amounts for people: durations, memory, devices, device-hours, counts and days."""

from __future__ import annotations

import datetime
from math import floor

from ..scheduling.model.snapshot import Device
from ..scheduling.model.text import hours

_UNITS_SHOWN = 2
MINUTE = 60
_HOUR = 3600
_DAY = 86400
HERE = "any moment"
_HERE_BELOW = 5
"""Seconds; a closer time is written as ``HERE``."""
_WHOLE_HOURS_FROM = 10
_SHORT_BELOW = 100
_GIBIBYTE = 2**30
_STEP = 1024
_ONE_DECIMAL_BELOW = 10
_STEPS_OF_ESTIMATES = ((20, 1), (60, 5), (600, 30), (3600, 60), (6 * 3600, 600))
"""Estimates below so many seconds are rounded to so many."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def count(number: int, noun: str) -> str:
    """``1 request``, ``2 requests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def trained_as_one(trials: int) -> str:
    """Say that one run of a notebook trains so many trials of a sweep."""
    return f"{count(trials, 'trial')} trained as one"


def number_text(value: float | None) -> str:
    """Return a reported value with six digits; empty for none."""
    return "" if value is None else f"{value:.6g}"


def provisional(cells: int) -> str:
    """``provisional: 2 cells wait for a person's points``; empty for none."""
    verb = "waits" if cells == 1 else "wait"
    return f"provisional: {count(cells, 'cell')} {verb} for a person's points" if cells else ""


def device_hours(device_seconds: float) -> str:
    """``12.5 device-hours``."""
    return f"{hours(device_seconds)} device-hours"


def device_hours_likely(likely: float, low: float, high: float) -> str:
    """``0.5 device-hours (0.3 to 1.2)``, from device-seconds; without a range that is not seen."""
    ends = hours(low), hours(high)
    return device_hours(likely) + (f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else "")


def device_name(device: Device) -> str:
    """``NVIDIA H200 #0 of node1``, with a note for simulated devices."""
    simulated = " (simulated)" if device.simulated else ""
    return f"{device.model} #{device.index}{simulated} of {device.node}"


def devices(number: int, model: str | None = None) -> str:
    """``no device``, ``1 device``, ``3 devices``, ``1 device (NVIDIA H200)``."""
    text = "no device" if number == 0 else count(number, "device")
    return f"{text} ({model})" if model else text


def duration(seconds: float) -> str:
    """Return the two largest units: ``1 h 30 min``, ``45 s``, ``2 d``; never negative."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, unit in _UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
        if len(parts) == _UNITS_SHOWN:
            break
    return " ".join(filter(None, parts)) or "0 s"


def about(seconds: float) -> str:
    """Return an estimated duration with two digits or less: ``40 s``, ``2 min 30 s``, ``3 h``."""
    step = next((step for bound, step in _STEPS_OF_ESTIMATES if seconds < bound), _HOUR)
    return duration(max(1.0, _rounded(seconds / step) * step))


def exact_duration(seconds: float) -> str:
    """Return a time as ``duration`` does, or with three digits if it is short: ``0.212 s``."""
    return duration(seconds) if seconds >= _SHORT_BELOW else f"{seconds:.3g} s"


def remaining(least: float, most: float) -> str:
    """``about 2 min left``, or ``1 min to 2 min left`` for bounds that differ."""
    low, high = duration(max(1.0, _rounded(least))), duration(max(1.0, _rounded(most)))
    return f"about {high} left" if low == high else f"{low} to {high} left"


def coming(seconds: float) -> str:
    """Return how far ahead an estimated time is: ``in about 2 h``, or ``HERE``."""
    if seconds < _HERE_BELOW:
        return HERE
    left = _rounded(seconds)
    if left < MINUTE:
        return f"in about {left} s"
    if left < _HOUR:
        return f"in about {_rounded(left / MINUTE)} min"
    if left >= _DAY:
        return f"in about {_rounded(left / _DAY)} d"
    hours_left, minutes = divmod(_rounded(left / MINUTE), 60)
    exact = minutes and hours_left < _WHOLE_HOURS_FROM
    return f"in about {hours_left} h" + (f" {minutes} min" if exact else "")


def _rounded(number: float) -> int:
    """Round half up, as browsers do."""
    return floor(number + 0.5)


def memory(size_bytes: int) -> str:
    """``80 GiB``, ``512 MiB``; empty if unknown."""
    if size_bytes <= 0:
        return ""
    if size_bytes < _GIBIBYTE:
        return f"{size_bytes / 2**20:.0f} MiB"
    return f"{size_bytes / _GIBIBYTE:.0f} GiB"


def size(size_bytes: float) -> str:
    """Return the size of a file or an upload: ``0 B``, ``3.4 MiB``, ``120 KiB``."""
    unit, *larger = ("B", "KiB", "MiB", "GiB")
    while size_bytes >= _STEP and larger:
        size_bytes /= _STEP
        unit = larger.pop(0)
    exact = unit == "B" or size_bytes >= _ONE_DECIMAL_BELOW
    return f"{size_bytes:.0f} {unit}" if exact else f"{size_bytes:.1f} {unit}"


def day(date: datetime.date) -> str:
    """``15 February 2027``."""
    return f"{date.day} {date:%B} {date.year}"


def day_of(moment: float) -> str:
    """Return the day of a moment, in UTC."""
    return day(datetime.datetime.fromtimestamp(moment, datetime.UTC).date())


def short_reference(image: str) -> str:
    """``torch@ab12cd34ef56``: enough of a digest to tell two builds apart."""
    name, _, digest = image.partition("@")
    return f"{name}@{digest.removeprefix('sha256:')[:12]}" if digest else name


def complete_sentence(text: str) -> str:
    """Return the text with a full stop, unless it ends a sentence already."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
