"""How the time of a decision grows: ``python -m tests.benchmarks.growth``.

The scenario of ``decide`` with queues and pools of other sizes. ``--picture`` draws the plot of
docs/benchmarks.md anew; the exit status is 0 only where nothing grows faster than n log n.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from pathlib import Path

from carrel.hub.config import garbage_collection
from carrel.hub.simulation.replay.svg import Axis, PlotLine, lines_plot

from . import report
from .decide import decisions
from .scenario import Size

QUEUES = (100, 1_000, 10_000, 100_000)
POOLS = (10, 100, 1_000, 10_000)
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "decide-growth.svg"
ABOUT = (
    "Milliseconds of one decision, on logarithmic axes, against the length of the queue and "
    "against the number of devices; the table beside it holds the same."
)
_STYLE = """<style>
svg { --paper: #fbfaf7; --ink: #24292f; --grid: #d0d4d9; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #1b1f24; --ink: #e6e8ea; --grid: #3b424a; }
}
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
.paper { fill: var(--paper); }
.grid { stroke: var(--grid); fill: none; }
.line { stroke: var(--ink); stroke-width: 1.6; fill: none; }
.mark { fill: var(--paper); stroke-dasharray: none; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
</style>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one decision took.

    Attributes:
        number: how many waited, or how many devices there were.
        ms: median of its CPU milliseconds.
    """

    number: int
    ms: float


def measured(of: str, sizes: Sequence[Size], seed: int, times: int) -> list[Point]:
    found = []
    for size in sizes:
        ms = statistics.median(decisions(size, seed, times))
        found.append(Point(number=getattr(size, of), ms=ms))
        report.note(f"{found[-1].number:,} {of}: {ms:,.1f} ms")
    return found


def growth(points: Sequence[Point]) -> list[tuple[float, float]]:
    """From each size to the next: how much longer it took, and how much n log n grew."""
    return [
        (
            after.ms / before.ms,
            after.number * log(after.number) / (before.number * log(before.number)),
        )
        for before, after in pairwise(points)
    ]


def table(name: str, points: Sequence[Point]) -> str:
    lines = [
        f"| {name} | decide | times as long | n log n |",
        "| ---: | ---: | ---: | ---: |",
        f"| {points[0].number:,} | {points[0].ms:,.1f} ms |  |  |",
    ]
    for point, (longer, limit) in zip(points[1:], growth(points), strict=True):
        lines.append(f"| {point.number:,} | {point.ms:,.1f} ms | {longer:.1f} | {limit:.1f} |")
    return "\n".join(lines)


def picture(lines: Sequence[PlotLine]) -> str:
    """The plot as a file of its own, with the names at the ends of the lines."""
    every = [point for line in lines for point in line.points]
    figure = lines_plot(
        title="",
        about=ABOUT,
        across=_decades("queued requests, or devices", [x for x, _ in every]),
        up=_decades("milliseconds", [y for _, y in every]),
        lines=lines,
    )
    drawn = re.search(r"<svg viewBox=\"(\d+) (\d+) (\d+) (\d+)\"(.*?)</svg>", figure, re.DOTALL)
    if drawn is None:
        raise ValueError("The plot holds no drawing.")
    _, _, width, height, rest = drawn.groups()
    legend = "".join(
        f'<g class="line" transform="translate(90 {24 + 18 * number})"><path d="M0,0H48" '
        f'stroke-dasharray="{dash}"/><path d="{mark}" transform="translate(24 0)" class="mark"/>'
        f'</g><text x="146" y="{28 + 18 * number}">{line.name}</text>'
        for number, (line, (dash, mark)) in enumerate(zip(lines, _drawn(figure), strict=True))
    )
    # The last number under the plot needs a little more room than on a page.
    wide = int(width) + 16
    body = rest.replace(">", f'>{_STYLE}<rect width="{wide}" height="{height}" class="paper"/>', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" '
        f'height="{height}"{body}{legend}</svg>\n'
    )


def _drawn(figure: str) -> list[tuple[str, str]]:
    """The dashes and the mark of each line, from the legend of the page."""
    return re.findall(r'<path d="M0,7H48" stroke-dasharray="([^"]*)"/><path d="([^"]*)"', figure)


def _decades(title: str, values: Sequence[float]) -> Axis:
    tens = [10.0**power for power in range(-1, 7)]
    least = max(each for each in tens if each <= min(values))
    most = min(each for each in tens if each >= max(values))
    ticks = [(each, f"{each:,.6g}") for each in tens if least <= each <= most]
    return Axis(title=title, least=least, most=most, ticks=ticks, logarithmic=True)


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--times", type=int, default=3, help="decisions of each size (3)")
    options.add_argument("--picture", action="store_true", help="draw the plot of the docs anew")
    chosen = options.parse_args()
    garbage_collection.raise_thresholds()  # As in what is measured.
    queues = [Size(pending=number) for number in QUEUES]
    pools = [Size(devices=number) for number in POOLS]
    found = {
        "queued, on 1,000 devices": measured("queued", queues, chosen.seed, chosen.times),
        "devices, with 10,000 queued": measured("devices", pools, chosen.seed, chosen.times),
    }
    again = f"`{report.command_line(__spec__.name, *sys.argv[1:])}`"
    print(report.conditions(), again, *(table(*each) for each in found.items()), sep="\n\n")
    if chosen.picture:
        lines = [
            PlotLine(name=name, points=points, marks=points)
            for name, each in found.items()
            if (points := [(float(point.number), point.ms) for point in each])
        ]
        PICTURE.write_text(picture(lines), encoding="utf-8")
    steps = [step for each in found.values() for step in growth(each)]
    return 0 if all(longer <= limit for longer, limit in steps) else 1


if __name__ == "__main__":
    sys.exit(main())
