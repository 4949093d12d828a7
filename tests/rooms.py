"""Draws docs/images/rooms.svg from the table of layers: ``python -m tests.rooms``.

Each folder is a room, each layer a floor, and the stairs lead down only. What stands in a room
is the first line of its package.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .drawing import Picture, wrap
from .test_architecture import HOLDERS, LAYERS, layer, modules

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "rooms.svg"

# From the ground up; one for each layer.
FLOORS = (
    "common ground",
    "pure decisions",
    "shapes and words",
    "memory, conduct",
    "faces and engines",
    "put together",
    "front door",
)
WIDTH, LEFT, GAP, PAD = 1050, 150, 12, 12
STAIRS = 60
IN_A_ROW = 3
SHORT = 60
BETWEEN_NEIGHBOURS = "hub/ finds the engines in spawners/ by entry point and never imports them"
ROOMS = WIDTH - LEFT - STAIRS - 2 * PAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder, or the modules of a folder that lie on one floor.

    Attributes:
        words: what is done in there, or the names of the modules.
        inner: folders inside, which are of the same floor.
    """

    name: str
    words: str
    inner: tuple[str, ...] = ()
    wide: bool = False

    def lines(self, width: float) -> list[str]:
        inside = f"inside: {', '.join(self.inner)}" if self.inner else ""
        return [*wrap(self.words, width), *wrap(inside, width)]


def rooms(floor: int) -> list[Room]:
    """Folders first, then what lies in ``hub/`` itself."""
    packages = [name for name, path in modules().items() if path.name == "__init__.py"]
    here = sorted(name for name in packages if name and name != "hub" and _floor(name) == floor)
    outer = [name for name in here if not any(name.startswith(f"{each}.") for each in here)]
    found = [
        Room(
            name=f"{name.replace('.', '/')}/",
            words=_first_line(name),
            inner=tuple(
                f"{each.removeprefix(f'{name}.').replace('.', '/')}/"
                for each in here
                if each.startswith(f"{name}.")
            ),
        )
        for name in outer
    ]
    loose = sorted(
        name.removeprefix("hub.")
        for name in modules()
        if name.startswith("hub.") and name.count(".") == 1 and name not in packages
        if layer(name) == floor
    )
    if loose:
        names = f"modules: {', '.join(loose)}"
        found.append(Room(name="hub/", words=names, wide=len(names) > SHORT))
    return found


def _floor(package: str) -> int:
    """A package that only holds others stands where the first of them is to stand."""
    if package not in HOLDERS:
        return layer(package)
    return min(
        number
        for number, names in enumerate(LAYERS)
        if any(name.startswith(f"{package}.") for name in names)
    )


def _first_line(package: str) -> str:
    text = ast.get_docstring(ast.parse(modules()[package].read_text(encoding="utf-8")))
    assert text, f"{package} does not say what it is for"
    return text.split("\n")[0].replace("``", "")


def picture() -> str:
    assert len(FLOORS) == len(LAYERS), "a floor has no name"
    drawn = Picture(title=describe(), width=WIDTH, height=0)
    drawn.text(LEFT + PAD, 28, "carrel/", "name code")
    drawn.text(
        LEFT + PAD + 70, 28, "each folder is a room; a room uses its own floor and those below"
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
    """One floor from ``top`` on; gives where it ends."""
    back = len(drawn.shapes)
    drawn.text(PAD + 4, top + 24, FLOORS[number], "name")
    drawn.text(PAD + 4, top + 42, "ground floor" if number == 0 else f"floor {number}", "soft")
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


def _rows(found: Sequence[Room]) -> list[list[Room]]:
    small = [room for room in found if not room.wide]
    count = -(-len(small) // IN_A_ROW)
    width = -(-len(small) // count) if count else 0
    rows = [small[at * width : (at + 1) * width] for at in range(count)]
    return rows + [[room] for room in found if room.wide]


def _outside(drawn: Picture, top: float) -> float:
    """What may look into every room, and belongs to none."""
    drawn.box(PAD / 2, top, WIDTH - PAD, 40, kind="open")
    drawn.text(PAD + 4, top + 25, "outside", "name")
    drawn.text(LEFT + PAD, top + 25, "docs/, tests/", "code")
    drawn.text(LEFT + PAD + 120, top + 25, "look into every room; nobody inside uses them", "soft")
    return top + 40 + PAD


def describe() -> str:
    """The picture in words, for whoever cannot see it."""
    floors = [
        f"{FLOORS[number]}: {', '.join(room.name for room in rooms(number))}"
        for number in reversed(range(len(LAYERS)))
    ]
    return "The folders as rooms of a house, from the top floor down. " + "; ".join(floors)


def main() -> None:
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"Wrote {PICTURE}")


if __name__ == "__main__":
    main()
