"""What a benchmark reports: rows of one form, as JSON lines or as a table for docs/benchmarks.md.

Every benchmark is ``python -m tests.benchmarks.NAME [--json]``. A row is met when ``ours`` is at
most ``goal``; both are in the row's unit. What could not be measured is null, and never met.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TypeGuard

import httpx

DECIMALS = 3
_UNMEASURED = "not measured"
_FINE = ("", "%", "h")
"""Units that are shown with two digits after the point."""
FAILURES = (AssertionError, httpx.HTTPError)
"""What the test harness raises where an installation does not do what is measured."""


def middle(values: Sequence[float]) -> float | None:
    """The median; None where nothing was measured."""
    return median(values) if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A goal in figures: there is nothing to compare with."""

    limit: float

    @property
    def peer(self) -> None:
        return None

    @property
    def base(self) -> float:
        return self.limit

    @property
    def words(self) -> str:
        return f"at most {self.limit:,.0f} {{unit}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotWorseThan:
    """A goal beside a peer that was measured in the same run.

    Attributes:
        peer: None where it could not be measured.
        times: how many times the peer's value is allowed,
        or_more: or how much above it, whichever allows more.
    """

    peer: float | None
    times: float
    or_more: float = 0.0

    @property
    def limit(self) -> float | None:
        if not _measured(self.peer):
            return None
        return max(self.times * self.peer, self.peer + self.or_more)

    @property
    def base(self) -> float | None:
        return self.peer

    @property
    def words(self) -> str:
        more = f", or {self.or_more:,.0f} {{unit}} more" if self.or_more else ""
        return f"at most {self.times:.3g} times the peer{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterThan:
    """A goal as a part of what a peer took in the same run: so many times faster."""

    peer: float | None
    times: float

    @property
    def limit(self) -> float | None:
        return self.peer / self.times if _measured(self.peer) else None

    @property
    def base(self) -> float | None:
        return self.peer

    @property
    def words(self) -> str:
        return f"at least {self.times:g} times faster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """No goal: only a peer that was measured in the same run, for whoever wants to compare."""

    peer: float | None

    @property
    def limit(self) -> float | None:
        return math.inf if _measured(self.peer) else None

    @property
    def base(self) -> float | None:
        return self.peer

    @property
    def words(self) -> str:
        return "none"


Goal = AtMost | NotWorseThan | FasterThan | Beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure with its goal.

    Attributes:
        ours: None where it could not be measured.
        unit: of ``ours``, ``peer`` and ``goal``.
        command: what prints this row again.
    """

    name: str
    ours: float | None
    goal: Goal
    unit: str
    command: str

    @property
    def measured(self) -> bool:
        """Nothing at all is a figure only where nothing at all is asked for."""
        return _measured(self.ours) or self.ours == 0 == self.goal.limit

    @property
    def ratio(self) -> float | None:
        """To the peer, or to the goal where there is no peer to have."""
        if not _measured(self.ours) or not _measured(self.goal.base):
            return None
        return self.ours / self.goal.base

    @property
    def met(self) -> bool:
        limit = self.goal.limit
        if self.ours is None or limit is None:
            return False
        return self.measured and self.ours <= limit

    def fields(self) -> dict[str, object]:
        return {
            "name": self.name,
            "ours": round(self.ours, DECIMALS) if self.ours is not None and self.measured else None,
            "peer": _shown(self.goal.peer),
            "ratio": _shown(self.ratio),
            "goal": _shown(self.goal.limit),
            "met": self.met,
            "unit": self.unit,
            "command": self.command,
        }


def parser(about: str) -> argparse.ArgumentParser:
    """The command line that all benchmarks share; each adds its own sizes."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--json", action="store_true", help="print one JSON object a line")
    return made


def command_line(module: str, *words: str) -> str:
    """What to type, from the repository root, to print the rows again."""
    return " ".join(["python", "-m", module, *words])


@contextmanager
def measuring(what: str, *values: list[float]) -> Iterator[None]:
    """What fails to the end counts as not measured: nothing is left of these values."""
    try:
        yield
    except FAILURES as error:
        for each in values:
            each.clear()
        note(f"{what}: not measured. {type(error).__name__}: {error}")


def note(text: str) -> None:
    """How it goes, for whoever watches; never among the rows."""
    print(text, file=sys.stderr, flush=True)


def finish(rows: Sequence[Row], *, as_json: bool) -> int:
    """Print the rows; the exit status says whether all of them are met."""
    print(json_lines(rows) if as_json else table(rows), flush=True)
    note(verdict(rows))
    return 0 if rows and all(row.met for row in rows) else 1


def verdict(rows: Sequence[Row]) -> str:
    """One sentence for whoever ran it."""
    asked = [row for row in rows if not (row.met and isinstance(row.goal, Beside))]
    missed = [row.name for row in asked if not row.met]
    met = f"{len(asked) - len(missed)} of {len(asked)} goals are met."
    return f"{met} Missed: {'; '.join(missed)}." if missed else met


def conditions() -> str:
    """When and where something was measured."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load average at the end {os.getloadavg()[0]:.1f}"
    )


def json_lines(rows: Sequence[Row]) -> str:
    return "\n".join(json.dumps(row.fields(), allow_nan=False) for row in rows)


def table(rows: Sequence[Row]) -> str:
    """Markdown, as docs/benchmarks.md holds it."""
    lines = [
        conditions(),
        "",
        *(f"`{command}`\n" for command in dict.fromkeys(row.command for row in rows)),
        "| | ours | peer | ratio | goal | met |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        ours = _with_unit(row.ours, row.unit) if row.measured else _UNMEASURED
        ratio = _ratio(row)
        peer = "none" if isinstance(row.goal, AtMost) else _with_unit(row.goal.peer, row.unit)
        lines.append(
            f"| {row.name} | {ours} | {peer} | {ratio} "
            f"| {row.goal.words.format(unit=row.unit)} | {_met(row)} |"
        )
    return "\n".join(lines)


def _measured(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value) and value > 0


def _shown(value: float | None) -> float | None:
    return round(value, DECIMALS) if _measured(value) else None


def _met(row: Row) -> str:
    if not row.met:
        return "**no**"
    return "" if isinstance(row.goal, Beside) else "yes"


def _ratio(row: Row) -> str:
    if row.measured and row.goal.limit == 0:
        return "none"
    return _UNMEASURED if row.ratio is None else f"{row.ratio:.2f}"


def _with_unit(value: float | None, unit: str) -> str:
    if value is None or not math.isfinite(value):
        return _UNMEASURED
    digits = 2 if unit in _FINE else 0
    return f"{value:,.{digits}f} {unit}".rstrip()
