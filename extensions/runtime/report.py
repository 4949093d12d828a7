"""``carrel.report(name, value, step)``: record a value of a job, such as the loss of a step.

It appends a line to the file named by ``CARREL_REPORTS``, which the service reads for the curves of
the job's page. Outside of a job it only checks its arguments, and it never fails because of the
file: a report is not worth a failed job.

Where trials of a sweep are trained as one, ``CARREL_TRIAL_REPORTS`` names a file for each trial,
and a value may be a vector with one value a trial.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Iterable
from typing import Any, SupportsFloat

VARIABLE = "CARREL_REPORTS"
TRIALS_VARIABLE = "CARREL_TRIAL_REPORTS"
"""Paths, one a line, of trials that are trained as one; unset everywhere else."""
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
            NaN and infinities are recorded as such, and integers as integers. In a sweep whose
            trials are trained as one, also a list, an array or a tensor with one value a trial.
        step: such as the number of the epoch, from 0; None for the one after the last report of
            this name.

    Raises:
        TypeError, ValueError: an argument is none of these.
    """
    together = os.environ.get(TRIALS_VARIABLE)
    if together:
        paths = together.split("\n")
        lines = _lines(name, _values(value, len(paths)), step)
        for own, line in zip(paths, lines, strict=True):
            _append(own, line)
        return
    (line,) = _lines(name, [real_number(value)], step)
    path = os.environ.get(VARIABLE)
    if path:
        _append(path, line)


def _append(path: str, line: bytes) -> None:
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


def _lines(name: str, numbers: Iterable[float], step: int | None) -> list[bytes]:
    """Return a line for each number of a report."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a report is text, not {type(name).__name__}")
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(f"the name of a report has 1 to {LONGEST_NAME} printable characters")
    if step is not None and (isinstance(step, bool) or not hasattr(step, "__index__")):
        raise TypeError(f"the step of a report is a whole number, not {type(step).__name__}")
    if step is not None and not 0 <= int(step) < 1 << 53:
        raise ValueError(f"the step of a report is a whole number from 0, not {step}")
    at = None if step is None else int(step)
    now = round(time.time(), 3)
    found = (
        {
            "name": name,
            "value": number if math.isfinite(number) else _NOT_FINITE[str(number)],
            "step": at,
            "at": now,
        }
        for number in numbers
    )
    return [json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in found]


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""As JavaScript writes them: strict JSON has no number for them."""


def _values(value: Any, trials: int) -> list[float]:
    """Return the number of each trial: those of a vector, or one number for all."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    is_array = listed is not value
    if not isinstance(listed, list | tuple) or (is_array and len(listed) == 1):
        return [real_number(value)] * trials
    if len(listed) != trials:
        raise ValueError(
            f"{trials} trials are trained as one: the value of a report is one number, or "
            f"{trials} of them, one a trial, not {len(listed)}"
        )
    return [real_number(each) for each in listed]


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
        warnings.warn(f"carrel.report: values are not recorded: {why}", stacklevel=4)
