"""Curves of reported values as paths of an SVG drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..messages.units import number_text

WIDTH, HEIGHT = 1000.0, 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values over steps; the scale reaches from the least to the most.

    Attributes:
        id: unique on its page.
        told: the last value, and others, as text.
        about: alternative text of the drawing.
        line, dots: paths, of the values and of those without a neighbour.
        scale: texts of its upper and its lower end.
        axis: texts of its first and its last step.
    """

    id: str
    name: str
    told: str
    about: str
    line: str
    dots: str
    scale: tuple[str, str]
    axis: tuple[str, str]


def curve(
    id_: str, name: str, told: str, steps: Sequence[int], values: Sequence[float | None]
) -> Curve | None:
    """Return the curve of values; None if there are fewer than two."""
    known = [value for value in values if value is not None]
    if len(known) < 2:  # noqa: PLR2004  # ends of a line
        return None
    least, most = min(known), max(known)
    # Half of each, since the distance of two large numbers may be infinite.
    height, width = most / 2 - least / 2 or 1.0, steps[-1] - steps[0] or 1
    across = [WIDTH * (step - steps[0]) / width for step in steps]
    points = [
        None if value is None else f"{x:.2f} {HEIGHT * ((most / 2 - value / 2) / height):.2f}"
        for x, value in zip(across, values, strict=True)
    ]
    around = zip([None, *points], points, [*points[1:], None], strict=False)
    alone = [at for before, at, after in around if at and before is None and after is None]
    line, pen_is_down = "", False
    for point in points:
        if point is not None:
            line += f"{'L' if pen_is_down else 'M'}{point}"
        pen_is_down = point is not None
    ends = number_text(most), number_text(least)
    return Curve(
        id=id_,
        name=name,
        told=told,
        about=f"{name} from step {steps[0]} to {steps[-1]}: {told}, from {ends[1]} to {ends[0]}.",
        line=line,
        dots="".join(f"M{point}h.01" for point in alone),
        scale=ends,
        axis=(str(steps[0]), str(steps[-1])),
    )
