"""The functions that a job has accelerated by ``carrel.execution``, in the folder of an attempt.

The job writes the file: it is read bounded, and lines that are no reports are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files.safe_fs import opened_file
from .spec import COMPILATIONS

MOST_BYTES: Final = 1 << 20
MOST_FUNCTIONS: Final = 50
MOST_LINES: Final = 30
LONGEST_TEXT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilationObstacle:
    """A line that the compiler could not take.

    Attributes:
        place: file or cell, with the number of the line; empty where it is no line.
        source: the line.
        reason: what it does.
        rewrite: what to write instead; empty where there is no advice.
    """

    place: str
    source: str
    reason: str
    rewrite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratedFunctionReport:
    """What has become of one function.

    Attributes:
        place: file or cell, with the number of its first line.
        outcome: a sentence.
    """

    function: str
    place: str
    outcome: str
    obstacles: Sequence[CompilationObstacle]


def read_compilations(folder: Path) -> Sequence[AcceleratedFunctionReport]:
    """Return the functions in the order in which they were first called, each as it is now."""
    try:
        with opened_file(folder, COMPILATIONS) as file:
            lines = file.read(MOST_BYTES).split(b"\n")
    except OSError:
        return ()
    found: dict[tuple[str, str], AcceleratedFunctionReport] = {}
    for line in lines:
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            one = _function(json.loads(line))
            key = one.function, one.place
            if key in found or len(found) < MOST_FUNCTIONS:
                found[key] = one
    return tuple(found.values())


def _function(found: Mapping[str, object]) -> AcceleratedFunctionReport:
    obstacles = found["obstacles"]
    if not isinstance(obstacles, list):
        raise TypeError
    return AcceleratedFunctionReport(
        function=_text(found["function"]),
        place=_text(found["place"]),
        outcome=_text(found["outcome"]),
        obstacles=tuple(
            CompilationObstacle(
                place=_text(each["place"]),
                source=_text(each["source"]),
                reason=_text(each["reason"]),
                rewrite=_text(each["rewrite"]),
            )
            for each in obstacles[:MOST_LINES]
        ),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    printable = "".join(each if each.isprintable() else " " for each in value[:LONGEST_TEXT])
    return printable.strip()
