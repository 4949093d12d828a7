"""Plots as values: what a template draws as inline SVG, with the same figures as a table.

The drawing is stretched to its place and holds no text, so that it stays sharp and readable at
any width; what is written stands around it as ordinary text, times in the reader's zone.
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
    """Values from left to right; None where nothing is known, texts as a reader wants them."""

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
    """Several series over the same marks of an axis.

    Attributes:
        id: unique on its page.
        about: what a reader of the picture would be told of it.
        unit: of the values; stands at the scale.
        marks: what the positions are called: moments, or texts.
        across: title of that column in the table.
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
        """A few marks, from the first to the last, and where they stand."""
        last = len(self.marks) - 1
        chosen = sorted({0, last // 3, 2 * last // 3, last}) if last > 0 else [0]
        return [(number, self.marks[number]) for number in chosen if number <= last]

    def bars(self, series: Series) -> list[Bar]:
        step = WIDTH / max(1, len(self.marks))
        return [
            Bar(
                x=round((number + _GAP / 2) * step, 2),
                y=round(HEIGHT - self._height(value), 2),
                width=round(step * (1 - _GAP), 2),
                height=round(self._height(value), 2),
                text=text,
            )
            for number, (value, text) in enumerate(zip(series.values, series.texts, strict=True))
            if value
        ]

    def path(self, series: Series) -> str:
        """A line through what is known, with a gap where nothing is."""
        step = WIDTH / max(1, len(self.marks))
        parts, pen_is_down = list[str](), False
        for number, value in enumerate(series.values):
            if value is None:
                pen_is_down = False
                continue
            x, y = (number + 0.5) * step, HEIGHT - self._height(value)
            # The short stroke makes a dot of what stands alone.
            parts.append(f"{'L' if pen_is_down else 'M'}{x:.2f} {y:.2f}h.01")
            pen_is_down = True
        return "".join(parts)

    def _height(self, value: float) -> float:
        return HEIGHT * min(1.0, max(0.0, value / self.top))


def round_above(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10, …: where a scale may end."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(power * nice for nice in _NICE if power * nice >= value)


def span_unit(seconds: Sequence[float | None]) -> tuple[float, str]:
    """How many seconds a good unit for these has, and its name."""
    most = max((each for each in seconds if each is not None), default=0.0)
    if most >= 2 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if most >= 2 * 60 else (1.0, "seconds")
