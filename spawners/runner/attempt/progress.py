"""Read progress inside a cell or command: from ``carrel.progress``, or from tqdm's bars."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .text import fold, storable

_MAX_LINE: Final = 4096
_MAX_TEXT: Final = 200
_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)([kMGTPEZY]?)"
_BAR: Final = re.compile(
    rf"(?:([^|\r\n]{{0,200}}):)?\s*\d{{1,3}}%\|[^|]{{0,500}}\|\s*{_NUMBER}/{_NUMBER}\s*\["
)
_COUNT: Final = re.compile(rf"(?:([^|\r\n]{{0,200}}):)?\s*{_NUMBER}[a-zA-Z]{{1,20}} \[\d+:\d\d")
_FACTORS: Final = {"": 1, **{letter: 1000 ** (n + 1) for n, letter in enumerate("kMGTPEZY")}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressStep:
    """Progress: ``done`` of ``of``, in any unit; ``of`` is None if the total is unknown."""

    done: float
    of: float | None = None
    text: str = ""


def step_of_bar(printed: str) -> ProgressStep | None:
    """Return the last tqdm bar in this piece of stderr, if there is one."""
    if "%|" not in printed and "[" not in printed:
        return None
    for line in reversed(fold(printed.rstrip("\r\n"))[-_MAX_LINE:].split("\n")):
        if bar := _BAR.search(line):
            text, done, done_unit, of, of_unit = bar.groups()
            total = float(of) * _FACTORS[of_unit]
            return ProgressStep(
                done=float(done) * _FACTORS[done_unit], of=total or None, text=_text(text or "")
            )
        if count := _COUNT.search(line):
            text, done, unit = count.groups()
            return ProgressStep(done=float(done) * _FACTORS[unit], text=_text(text or ""))
    return None


class ProgressFile:
    """The file that ``carrel.progress`` overwrites; ``read_new`` returns every step once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = b""

    def read_new(self) -> ProgressStep | None:
        try:
            with self._path.open("rb") as file:
                line = file.readline(_MAX_LINE)
        except OSError:
            return None
        if line == self._last or not line.endswith(b"\n"):
            return None
        self._last = line
        return _parse(line)


def _parse(line: bytes) -> ProgressStep | None:
    """Parse a line of the job's own file, which may contain anything."""
    try:
        step = json.loads(line)
        done, of, text = float(step["done"]), step.get("of"), str(step.get("text", ""))
        total = None if of is None else float(of)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    if not math.isfinite(done) or not (total is None or math.isfinite(total)):
        return None
    return ProgressStep(done=done, of=total, text=_text(text))


def _text(text: str) -> str:
    return " ".join(storable(text).split())[:_MAX_TEXT]
