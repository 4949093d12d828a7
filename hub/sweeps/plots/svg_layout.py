"""Parallel coordinates in pixels, which a page and a widget draw as SVG.

The drawing contains its labels, so that it keeps its proportions; a narrow page scrolls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.sweeps import TrialsOut
from .trial_plots import AxisScale, ParallelAxis, TrialLine, parallel_coordinates

HEIGHT: Final = 250
_TOP, _BOTTOM = 46, 236
_SIDE: Final = 70
_WIDEST, _NARROWEST, _WIDTH = 260, 120, 900
_LONGEST: Final = 16
_ASIDE: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class TickMark:
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnAxis:
    """An axis with its name, the kind of its scale, and its labels.

    Attributes:
        tick_x, anchor: where the labels are, left of the axis, and right of the last one.
    """

    x: float
    name: str
    told: str
    tick_x: float
    anchor: str
    ticks: Sequence[TickMark]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelDrawing:
    """Parallel coordinates in pixels.

    Attributes:
        axis: the upper and the lower end of all axes.
        lines, best: paths; ``marks`` are the points of the best trial.
    """

    width: int
    height: int
    axis: tuple[int, int]
    axes: Sequence[DrawnAxis]
    lines: str
    best: str
    marks: Sequence[tuple[float, float]]
    number: int
    about: str
    note: str


def parallel_drawing(trials: TrialsOut) -> ParallelDrawing | None:
    """Return the drawing; None if there is nothing to compare."""
    found = parallel_coordinates(trials)
    if found is None:
        return None
    goal = f"{'largest' if trials.maximize else 'smallest'} is best"
    step = min(_WIDEST, max(_NARROWEST, _WIDTH // (len(found.axes) - 1)))
    xs = [_SIDE + step * at for at in range(len(found.axes))]
    last = len(found.axes) - 1
    return ParallelDrawing(
        width=2 * _SIDE + step * last,
        height=HEIGHT,
        axis=(_TOP, _BOTTOM),
        axes=[
            _drawn(axis, x, goal if at == last else "", is_last=at == last)
            for at, (axis, x) in enumerate(zip(found.axes, xs, strict=True))
        ],
        lines="".join(_path(line, xs) for line in found.lines),
        best=_path(found.best, xs),
        marks=[
            (x, _y(point))
            for x, point in zip(xs, found.best.points, strict=True)
            if point is not None
        ],
        number=found.best.number,
        about=found.about,
        note=found.note,
    )


def _drawn(axis: ParallelAxis, x: float, goal: str, *, is_last: bool) -> DrawnAxis:
    name = axis.name if len(axis.name) <= _LONGEST else f"{axis.name[: _LONGEST - 1]}…"
    told = goal or ("log scale" if axis.scale is AxisScale.LOGARITHMIC else "")
    ticks = [TickMark(y=_y(tick.at), text=tick.text) for tick in axis.ticks]
    tick_x, anchor = (x + _ASIDE, "start") if is_last else (x - _ASIDE, "end")
    return DrawnAxis(x=x, name=name, told=told, tick_x=tick_x, anchor=anchor, ticks=ticks)


def _y(at: float) -> float:
    return round(_BOTTOM - at * (_BOTTOM - _TOP), 1)


def _path(line: TrialLine, xs: Sequence[float]) -> str:
    path, pen_is_down = "", False
    for x, point in zip(xs, line.points, strict=True):
        if point is not None:
            path += f"{'L' if pen_is_down else 'M'}{x:g} {_y(point):g}"
        pen_is_down = point is not None
    return path
