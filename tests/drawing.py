"""A few shapes of SVG for the pictures that are drawn from the code.

A picture brings its own background and two sets of colours, so that it can be read on a light
page and on a dark one. Text is text: it can be searched, and read aloud.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

Point = tuple[float, float]

STYLE = """\
svg { --paper: #fbfaf7; --ink: #24292f; --soft: #5b636c; --wall: #9aa3ad; --room: #ffffff;
      --held: #dcebf7; --end: #e9ecef; --arrow: #4a6f8f; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #1b1f24; --ink: #e6e8ea; --soft: #a9b1ba; --wall: #59636e; --room: #252a31;
        --held: #1f3a52; --end: #30363d; --arrow: #8fb8da; }
}
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px;
       fill: var(--ink); }
.name { font-weight: 600; }
.code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.soft { fill: var(--soft); font-size: 12px; }
.middle { text-anchor: middle; }
.paper { fill: var(--paper); }
.box { fill: var(--room); stroke: var(--wall); stroke-width: 1.2; }
.held { fill: var(--held); }
.end { fill: var(--end); }
.open { fill: none; stroke-dasharray: 4 4; }
.line { fill: none; stroke: var(--arrow); stroke-width: 1.4; }
.head { fill: var(--arrow); }
.label { font-size: 12px; fill: var(--soft); paint-order: stroke; stroke: var(--paper);
         stroke-width: 5px; stroke-linejoin: round; }"""

HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker>'
)


@dataclass(slots=True, kw_only=True)
class Picture:
    """Shapes, from the bottom to the top."""

    title: str
    width: int
    height: int
    shapes: list[str] = field(default_factory=list)

    def box(
        self, x: float, y: float, width: float, height: float, *, kind: str = "", radius: float = 6
    ) -> None:
        self.shapes.append(
            f'<rect class="{f"box {kind}".strip()}" x="{x:g}" y="{y:g}" width="{width:g}" '
            f'height="{height:g}" rx="{radius:g}"/>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        self.shapes.append(f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>')

    def lines(self, x: float, y: float, lines: Sequence[str], kind: str = "") -> None:
        for number, line in enumerate(lines):
            self.text(x, y + number * 16, line, kind)

    def arrow(self, points: Sequence[Point]) -> None:
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self.shapes.append(f'<path class="line" marker-end="url(#head)" d="M{path}"/>')

    def svg(self) -> str:
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img" '
                'aria-labelledby="title">',
                f'<title id="title">{escape(self.title)}</title>',
                f"<style>\n{STYLE}\n</style>",
                f"<defs>{HEAD}</defs>",
                f'<rect class="paper" width="{self.width}" height="{self.height}" rx="10"/>',
                *self.shapes,
                "</svg>\n",
            ]
        )


def wrap(words: str, width: float, *, letter: float = 6.7) -> list[str]:
    """Wrap text to lines of at most ``width``, for letters of this mean width."""
    return textwrap.wrap(words, max(8, int(width / letter)), break_long_words=False)
