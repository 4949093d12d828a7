"""Draw docs/images/rooms.svg from the table of layers: ``python -m tests.rooms``.

Each package is a box, each layer a row, lowest at the bottom; imports point down only. The text
of a box is the first line of the package's docstring.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .drawing import Picture, wrap
from .source_tree import LAYERS, modules

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "rooms.svg"

WIDTH, LEFT, GAP, PAD = 1050, 150, 12, 12
STAIRS = 60
IN_A_ROW = 3
BETWEEN_NEIGHBOURS = "hub/ finds backends in spawners/ by entry point and never imports them"
ROOMS = WIDTH - LEFT - STAIRS - 2 * PAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A package, or a module in the root of ``hub``.

    Attributes:
        text: the first line of its docstring.
        inner: the packages inside.
    """

    name: str
    text: str
    inner: tuple[str, ...] = ()

    def lines(self, width: float) -> list[str]:
        inside = f"inside: {', '.join(self.inner)}" if self.inner else ""
        return [*wrap(self.text, width), *wrap(inside, width)]


def rooms(number: int) -> list[Room]:
    """Return the packages of a layer, in the order of the table."""
    _, names = LAYERS[number]
    return [
        Room(
            name=name.replace(".", "/") + ("/" if _is_package(name) else ".py"),
            text=_first_line(name),
            inner=tuple(
                each.removeprefix(f"{name}.")
                for each in sorted(modules())
                if each.startswith(f"{name}.")
                and each.count(".") == name.count(".") + 1
                and _is_package(each)
            ),
        )
        for name in names
    ]


def _is_package(name: str) -> bool:
    return modules()[name].name == "__init__.py"


def _first_line(name: str) -> str:
    text = ast.get_docstring(ast.parse(modules()[name].read_text(encoding="utf-8")))
    assert text, f"{name} does not say what it is for"
    return text.split("\n")[0].replace("``", "")


def picture() -> str:
    drawn = Picture(title=describe(), width=WIDTH, height=0)
    drawn.text(LEFT + PAD, 28, "carrel/", "name code")
    drawn.text(
        LEFT + PAD + 70, 28, "each box is a package; it imports packages of lower layers only"
    )
    drawn.text(LEFT + PAD + 70, 46, BETWEEN_NEIGHBOURS, "soft")
    drawn.text(WIDTH - STAIRS - PAD, 46, "imports", "soft")
    top, stairs = 56.0, []
    for number in reversed(range(len(LAYERS))):
        bottom = _floor_at(drawn, number, top)
        if number:
            x = WIDTH - STAIRS / 2 - PAD
            stairs.append([(x, bottom - 26), (x, bottom + GAP + 26)])
        top = bottom + GAP
    for step in stairs:
        drawn.arrow(step)
    drawn.height = int(_outside(drawn, top))
    return drawn.svg()


def _floor_at(drawn: Picture, number: int, top: float) -> float:
    """Draw one layer from ``top`` on; return where it ends."""
    back = len(drawn.shapes)
    name, _ = LAYERS[number]
    for line, words in enumerate(wrap(name, LEFT - 4 * PAD)):
        drawn.text(PAD + 4, top + 24 + 16 * line, words, "name")
    y = top + PAD
    for row in _rows(rooms(number)):
        width = (ROOMS - GAP * (len(row) - 1)) / len(row)
        lines = [room.lines(width - 2 * PAD) for room in row]
        height = 34 + 16 * max(map(len, lines))
        for place, room in enumerate(row):
            x = LEFT + PAD + place * (width + GAP)
            drawn.box(x, y, width, height)
            drawn.text(x + PAD, y + 20, room.name, "name code")
            drawn.lines(x + PAD, y + 38, lines[place], "soft")
        y += height + GAP
    bottom = y - GAP + PAD
    behind = Picture(title="", width=0, height=0)
    behind.box(PAD / 2, top, WIDTH - PAD, bottom - top, kind="end")
    drawn.shapes[back:back] = behind.shapes
    return bottom


def _rows(found: Sequence[Room]) -> list[Sequence[Room]]:
    count = -(-len(found) // IN_A_ROW)
    width = -(-len(found) // count)
    return [found[at * width : (at + 1) * width] for at in range(count)]


def _outside(drawn: Picture, top: float) -> float:
    """Draw the folders outside the package; return where the row ends."""
    drawn.box(PAD / 2, top, WIDTH - PAD, 40, kind="open")
    drawn.text(PAD + 4, top + 25, "outside", "name")
    drawn.text(LEFT + PAD, top + 25, "docs/, tests/", "code")
    drawn.text(
        LEFT + PAD + 120, top + 25, "may import every package; none of them imports these", "soft"
    )
    return top + 40 + PAD


def describe() -> str:
    """Return a text alternative of the picture."""
    layers = [
        f"{LAYERS[number][0]}: {', '.join(room.name for room in rooms(number))}"
        for number in reversed(range(len(LAYERS)))
    ]
    return "The packages in layers, from the top layer down. " + "; ".join(layers)


def main() -> None:
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"Wrote {PICTURE}")


if __name__ == "__main__":
    main()
