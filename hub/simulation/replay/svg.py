"""Plots as inline SVG, readable without colour: lines differ by dashes and marks.

All text has the text colour of the page, so that a plot is readable in dark mode too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 12, 44
_DASHES = ("", "8 4", "2 3", "10 3 2 3", "14 4", "5 2", "20 3 4 3", "12 2 2 2 2 2")
_MARKS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",
    "M-4,-4h8v8h-8z",
    "M0,-5L5,4H-5z",
    "M0,-5L5,0L0,5L-5,0z",
    "M-4,-4L4,4M4,-4L-4,4",
    "M0,-5V5M-5,0H5",
    "M0,5L5,-4H-5z",
    "M-5,0H5M0,-5V5M-4,-4L4,4M4,-4L-4,4",
)
_SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotLine:
    """A line of a plot; its points are ordered from left to right.

    Attributes:
        marks: the points that get a mark.
    """

    name: str
    points: Sequence[tuple[float, float]]
    marks: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a plot.

    Attributes:
        ticks: values and their labels, within the limits.
    """

    title: str
    least: float
    most: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value between the limits, from 0 to 1."""
        if self.logarithmic:
            low, high, at = log10(self.least), log10(self.most), log10(max(value, self.least))
        else:
            low, high, at = self.least, self.most, value
        return min(1.0, max(0.0, (at - low) / (high - low))) if high > low else 0.0


def span(seconds: float) -> str:
    """Format a duration in one unit, for a scale or a label: ``90 s``, ``1.5 h``."""
    for size, unit in _SPANS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def seconds_axis(title: str, most: float) -> Axis:
    """Return a logarithmic axis from one second, with ticks at common durations."""
    marks = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 56 * 86400.0)
    end = max(most, 10.0)
    ticks = [(mark, span(mark)) for mark in marks if mark <= end]
    return Axis(title=title, least=1.0, most=end, ticks=ticks, logarithmic=True)


def percent_axis(title: str) -> Axis:
    ticks = [(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return Axis(title=title, least=0.0, most=1.0, ticks=ticks)


def count_axis(title: str, most: float) -> Axis:
    step = 10 ** floor(log10(max(most, 1.0)))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1) if most / (step * part) <= 5)  # noqa: PLR2004  # the most ticks that are readable
    end = step * max(1, ceil(most / step))
    ticks = [(n * step, f"{n * step:,.6g}") for n in range(round(end / step) + 1)]
    return Axis(title=title, least=0.0, most=end, ticks=ticks)


def days_axis(least: float, most: float) -> Axis:
    """Return an axis of days since the start."""
    days = max((most - least) / 86400.0, 1e-6)
    step = next((s for s in (0.25, 1, 2, 7, 14, 28, 91) if days / s <= 8), ceil(days / 8))  # noqa: PLR2004  # the most ticks that are readable
    ticks = [(least + n * step * 86400.0, f"{n * step:g}") for n in range(int(days / step) + 1)]
    return Axis(title="days since the first submission", least=least, most=most, ticks=ticks)


def lines_plot(*, title: str, about: str, across: Axis, up: Axis, lines: Sequence[PlotLine]) -> str:
    """Render lines over common axes, with a legend below."""
    body = [*_grid(across, up)]
    for number, line in enumerate(lines):
        body.append(_line(line, number, across, up))
    legend = _legend([line.name for line in lines])
    return _figure(title, about, "".join(body), HEIGHT, legend)


def bars_plot(*, title: str, about: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """Render two bars for every row: filled for the mean, hatched for the high percentile."""
    most = max((max(mean, high) for _, mean, high in rows), default=1.0) or 1.0
    full_width = WIDTH - _LEFT - 120
    parts = [
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" class="ink" '
        'stroke-width="3"/></pattern></defs>'
    ]
    for number, (name, mean, high) in enumerate(rows):
        y = 8 + number * 44
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 22}" class="end">{escape(name)}</text>')
        for value, fill, top in ((mean, "fill", y), (high, "hatch", y + 18)):
            width = value / most * full_width
            parts.append(
                f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="15" class="{fill}"/>'
                f'<text x="{_LEFT + width + 6:.1f}" y="{top + 12}">{span(value)}</text>'
            )
    return _figure(title, about, "".join(parts), 12 + 44 * len(rows), "")


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.share(value) * (WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.share(value) * (HEIGHT - _TOP - _BOTTOM)


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    left, right = _x(across, across.least), _x(across, across.most)
    top, bottom = _y(up, up.most), _y(up, up.least)
    for value, text in up.ticks:
        y = _y(up, value)
        yield f'<path d="M{left:.1f},{y:.1f}H{right:.1f}" class="grid"/>'
        yield f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" class="end">{escape(text)}</text>'
    for value, text in across.ticks:
        x = _x(across, value)
        yield f'<path d="M{x:.1f},{top:.1f}V{bottom:.1f}" class="grid"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16:.1f}" class="middle">{escape(text)}</text>'
    yield (
        f'<text x="{(left + right) / 2:.1f}" y="{HEIGHT - 6}" class="middle">'
        f"{escape(across.title)}</text>"
        f'<text transform="translate(12 {(top + bottom) / 2:.1f}) rotate(-90)" class="middle">'
        f"{escape(up.title)}</text>"
    )


def _line(line: PlotLine, number: int, across: Axis, up: Axis) -> str:
    path = "L".join(f"{_x(across, x):.1f},{_y(up, y):.1f}" for x, y in line.points)
    marks = "".join(
        f'<path d="{_MARKS[number % len(_MARKS)]}" '
        f'transform="translate({_x(across, x):.1f} {_y(up, y):.1f})" class="mark"/>'
        for x, y in line.marks
    )
    dash = _DASHES[number % len(_DASHES)]
    return (
        f'<g class="line s{number % len(_DASHES)}">'
        f'<path d="M{path}" stroke-dasharray="{dash or "none"}"/>{marks}</g>'
    )


def _legend(names: Sequence[str]) -> str:
    items = []
    for number, name in enumerate(names):
        dash = _DASHES[number % len(_DASHES)]
        items.append(
            f'<li><svg viewBox="0 0 48 14" width="48" height="14" aria-hidden="true">'
            f'<g class="line s{number % len(_DASHES)}">'
            f'<path d="M0,7H48" stroke-dasharray="{dash or "none"}"/>'
            f'<path d="{_MARKS[number % len(_MARKS)]}" transform="translate(24 7)" class="mark"/>'
            f"</g></svg> {escape(name)}</li>"
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _figure(title: str, about: str, body: str, height: int, legend: str) -> str:
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title, quote=True)}">'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(about, quote=True)}">'
        f"{body}</svg></div>{legend}</figure>"
    )
