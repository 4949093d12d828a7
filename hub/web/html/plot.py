"""Plots as values, which a template draws as inline SVG with a table of the same data.

The drawing is scaled to its container and contains no text, so that it is sharp at any width;
labels are ordinary text around it, with times in the reader's zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Literal

WIDTH, HEIGHT = 1000.0, 100.0
_GAP = 0.18
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values from left to right, None for unknown, with their formatted texts."""

    name: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Several series over the same axis.

    Attributes:
        id: unique on its page.
        about: alternative text of the drawing.
        unit: unit of the values, shown at the scale.
        marks: labels of the positions: times or texts.
        across: heading of the labels in the table.
        most: end of the scale; 0 for a round number above all values.
    """

    id: str
    title: str
    about: str
    unit: str
    marks: tuple[float, ...] | tuple[str, ...]
    across: str
    series: tuple[Series, ...]
    shape: Literal["bars", "lines"] = "bars"
    most: float = 0.0

    @property
    def top(self) -> float:
        found = [v for series in self.series for v in series.values if v is not None]
        return self.most or round_above(max(found, default=0.0))

    @property
    def empty(self) -> bool:
        return not any(value for series in self.series for value in series.values)

    @property
    def axis(self) -> list[tuple[int, float | str]]:
        """Return a few marks from the first to the last, with their positions."""
        last = len(self.marks) - 1
        chosen = sorted({0, last // 3, 2 * last // 3, last}) if last > 0 else [0]
        return [(number, self.marks[number]) for number in chosen if number <= last]

    def bars(self, series: Series) -> list[Bar]:
        step, top = WIDTH / max(1, len(self.marks)), self.top
        return [
            Bar(
                x=round((number + _GAP / 2) * step, 2),
                y=round(HEIGHT - _height(value, top), 2),
                width=round(step * (1 - _GAP), 2),
                height=round(_height(value, top), 2),
                text=text,
            )
            for number, (value, text) in enumerate(zip(series.values, series.texts, strict=True))
            if value
        ]

    def path(self, series: Series) -> str:
        """Return a line through the known values, with gaps."""
        parts, pen_is_down, top = list[str](), False, self.top
        for number, value in enumerate(series.values):
            if value is not None:
                parts.append(f"{'L' if pen_is_down else 'M'}{self._point(number, value, top)}")
            pen_is_down = value is not None
        return "".join(parts)

    def dots(self, series: Series) -> str:
        """Return a short stroke for each isolated value, which a line would not show."""
        known, top = [None, *series.values, None], self.top
        return "".join(
            f"M{self._point(number, value, top)}h.01"
            for number, (before, value, after) in enumerate(
                zip(known, series.values, known[2:], strict=False)
            )
            if value is not None and before is None and after is None
        )

    def _point(self, number: int, value: float, top: float) -> str:
        step = WIDTH / max(1, len(self.marks))
        return f"{(number + 0.5) * step:.2f} {HEIGHT - _height(value, top):.2f}"


def _height(value: float, top: float) -> float:
    return HEIGHT * min(1.0, max(0.0, value / top))


def round_above(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5, 10, … as the end of the scale."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(power * nice for nice in _NICE if power * nice >= value)


def span_unit(seconds: Sequence[float | None]) -> tuple[float, str]:
    """Return a suitable unit for these values: its seconds and its name."""
    most = max((each for each in seconds if each is not None), default=0.0)
    if most >= 2 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if most >= 2 * 60 else (1.0, "seconds")
