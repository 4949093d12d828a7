"""``carrel.report(name, value, step)``: record a value of a job, such as the loss of a step.

It appends a line to the file named by ``CARREL_REPORTS``, which the service reads for the curves of
the job's page. Outside of a job it only checks its arguments, and it never fails because of the
file: a report is not worth a failed job.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from typing import Any, SupportsFloat

VARIABLE = "CARREL_REPORTS"
LONGEST_NAME = 100
MOST_LINES = 100_000
MOST_BYTES = 16 << 20
"""The most of one file; what comes later is dropped."""
_CHUNK = 1 << 20
_EXACT = 1 << 53

_told: set[str] = set()
_counted: dict[str, tuple[int, int]] = {}
"""How many bytes and lines of a file this process has seen."""


def report(name: str, value: Any, step: int | None = None) -> None:
    """Record a value under a name; prints nothing.

    Args:
        name: such as ``"loss"``: at most 100 printable characters.
        value: a real number, or something with one, such as an array or a tensor of one element.
            NaN and infinities are recorded as such, and integers as integers.
        step: such as the number of the epoch, from 0; None for the one after the last report of
            this name.

    Raises:
        TypeError, ValueError: an argument is none of these.
    """
    line = _line(name, value, step)
    path = os.environ.get(VARIABLE)
    if not path:
        return
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            size, lines = _count(descriptor, path)
            if size + len(line) > MOST_BYTES or lines >= MOST_LINES:
                _tell(path, f"more than {MOST_LINES:,} values or {MOST_BYTES >> 20} MiB")
            elif os.write(descriptor, line) < len(line):
                _tell(path, "the disk is full")
        finally:
            os.close(descriptor)
    except OSError as error:
        _tell(path, str(error.strerror))


def _count(descriptor: int, path: str) -> tuple[int, int]:
    """Return size and number of lines; only what is new since the last call is read."""
    end = os.fstat(descriptor).st_size
    size, lines = _counted.get(path, (0, 0))
    if size > end:  # another file
        size, lines = 0, 0
    while size < min(end, MOST_BYTES):
        part = os.pread(descriptor, _CHUNK, size)
        if not part:
            break
        size, lines = size + len(part), lines + part.count(b"\n")
    _counted[path] = size, lines
    return size, lines


def _line(name: str, value: Any, step: int | None) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"the name of a report is text, not {type(name).__name__}")
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(f"the name of a report has 1 to {LONGEST_NAME} printable characters")
    if step is not None and (isinstance(step, bool) or not hasattr(step, "__index__")):
        raise TypeError(f"the step of a report is a whole number, not {type(step).__name__}")
    if step is not None and not 0 <= int(step) < 1 << 53:
        raise ValueError(f"the step of a report is a whole number from 0, not {step}")
    number = real_number(value)
    found = {
        "name": name,
        "value": number if math.isfinite(number) else _NOT_FINITE[str(number)],
        "step": None if step is None else int(step),
        "at": round(time.time(), 3),
    }
    return json.dumps(found, ensure_ascii=False).encode() + b"\n"


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""As JavaScript writes them: strict JSON has no number for them."""


def real_number(value: Any) -> float:
    """Return the number of a value, such as an array or a tensor of one element.

    Raises:
        TypeError, ValueError: it has none.
    """
    refused = f"the value of a report is one number, not {type(value).__name__}"
    try:
        found = value.item() if hasattr(value, "item") else value
        if isinstance(found, bool) or not isinstance(found, SupportsFloat):
            raise TypeError(refused)  # noqa: TRY301  # as for other values that are no number
        number = float(found)
        return int(found) if isinstance(found, int) and abs(found) <= _EXACT else number
    except OverflowError as error:
        raise ValueError("the value of a report is a number up to 1.8e308") from error
    except (TypeError, ValueError, RuntimeError) as error:  # PyTorch raises a RuntimeError
        raise TypeError(refused) from error


def _tell(path: str, why: str) -> None:
    if path not in _told:
        _told.add(path)
        warnings.warn(f"carrel.report: values are not recorded: {why}", stacklevel=3)
