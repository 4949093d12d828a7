"""What a job has loaded from a compile cache, and left in it; the job writes the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..files.safe_fs import opened_file
from ..messages.units import count
from ..records.json_value import parse_json
from .compile_cache_side import REPORT

_MOST_BYTES: Final = 1 << 16
_MOST: Final = 4
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileCacheReport:
    """Attributes:
    sentences: for the log and the page of the job.
    saved: whether there is something to keep.
    """

    sentences: Sequence[str] = ()
    saved: bool = False


def read_compile_cache_report(folder: Path) -> CompileCacheReport:
    """Return the report in the folder of an attempt; an empty one without a valid one."""
    try:
        with opened_file(folder, REPORT) as file:
            found = parse_json(file.read(_MOST_BYTES))
        return CompileCacheReport(
            sentences=tuple(_sentences(found)), saved=int(_part(found, "saved")["bytes"]) > 0
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return CompileCacheReport()


def _sentences(found: Any) -> list[str]:
    sentences = [_loaded(each) for each in list(_part(found, "loaded"))[:_MOST]]
    saved = _part(found, "saved")
    if int(saved["bytes"]):
        sentences.append(f"Kept {_graphs(int(saved['graphs']))} for your next job.")
    problems = list(_part(found, "problems"))[:_MOST]
    return [*sentences, *(_text(each) for each in problems)]


def _loaded(each: Any) -> str:
    whose = "the course's job" if each["course"] else "your job"
    loaded, used = int(each["graphs"]), int(each["used"])
    text = f"Loaded {_graphs(loaded)} of {whose} {_text(each['request'])}"
    return f"{text}, of which {used} {'was' if used == 1 else 'were'} used."


def _graphs(number: int) -> str:
    return count(number, "compiled graph")


def _part(found: Any, name: str) -> Any:
    return found[name]


def _text(value: object) -> str:
    text = str(value)[:_LONGEST]
    return "".join(each if each.isprintable() else " " for each in text).strip()
