"""Write docs/reference/lifecycle.md and its picture from the code: ``python -m tests.diagram``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from carrel.hub.scheduling.model.states import (
    ENDINGS,
    HOLDS_DEVICES,
    MAY_RUN,
    TABLE,
    TERMINAL,
    Move,
    State,
)

from .drawing import Picture, Point

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reference" / "lifecycle.md"
PICTURE = DOCS / "images" / "lifecycle.svg"

INTRODUCTION = """\
# The life of a request

Sessions, kernels, jobs and grading runs are requests, and every request follows this table.
A transition that is not in it is rejected and changes nothing. Every accepted request reaches
exactly one terminal state and stays there. [The states](../explanation/states.md) explains what
each state means for the owner.

This page and its picture are drawn from the table in `hub/scheduling/model/states.py`; after a
change there, run `python -m tests.diagram`.
"""

# The centre of each state's box: running states at the top, returns to the queue in the middle.
BOX_WIDTH, BOX_HEIGHT = 116, 40
PLACES: Mapping[State, Point] = {
    State.QUEUED: (136, 130),
    State.GRANTED: (320, 130),
    State.STARTING: (510, 130),
    State.RUNNING: (700, 130),
    State.STOPPING: (900, 130),
    State.LOST: (570, 270),
    State.HALTED: (710, 270),
    State.PREEMPTED: (850, 270),
    State.TIMED_OUT: (330, 456),
    State.CANCELLED: (480, 456),
    State.FAILED: (630, 456),
    State.SUCCEEDED: (1020, 456),
}
# Failing, being cancelled and running out of time share one arrow into a frame around the three.
ENDED = frozenset(ENDINGS.values())
FRAME = (252.0, 396.0, 456.0, 96.0)
INTO_THE_FRAME: Mapping[State, tuple[Point, ...]] = {
    State.QUEUED: ((96, 150), (96, 444), (252, 444)),
    State.GRANTED: ((320, 150), (320, 396)),
    State.STOPPING: ((940, 150), (940, 460), (708, 460)),
    State.LOST: ((590, 290), (590, 396)),
    State.HALTED: ((690, 290), (690, 396)),
    State.PREEMPTED: ((880, 290), (880, 424), (708, 424)),
}
# The arrows that are not straight, from border to border.
ROUTES: Mapping[tuple[State, State], tuple[Point, ...]] = {
    (State.GRANTED, State.QUEUED): ((320, 110), (320, 66), (150, 66), (150, 110)),
    (State.STARTING, State.QUEUED): ((490, 110), (490, 36), (120, 36), (120, 110)),
    (State.STARTING, State.STOPPING): ((540, 110), (540, 76), (900, 76), (900, 110)),
    (State.LOST, State.QUEUED): ((540, 290), (540, 340), (136, 340), (136, 150)),
    (State.HALTED, State.QUEUED): ((730, 290), (730, 340), (136, 340), (136, 150)),
    (State.PREEMPTED, State.QUEUED): ((830, 290), (830, 340), (136, 340), (136, 150)),
    (State.STOPPING, State.SUCCEEDED): ((958, 130), (1020, 130), (1020, 436)),
}
LONG_ENOUGH = 44.0
"""For an arrow's words to stand on that part of it."""


def page() -> str:
    """Return the page."""
    return "\n".join(
        [
            INTRODUCTION,
            f"![{describe()}](../images/{PICTURE.name})\n",
            "## States\n",
            "| state | holds its devices | processes may exist | terminal |",
            "| --- | --- | --- | --- |",
            *_states(),
            "\n## Transitions\n",
            "| from | transition | to |",
            "| --- | --- | --- |",
            *(f"| {state} | {move} | {after} |" for (state, move), after in _moves()),
            "",
        ]
    )


def _moves() -> list[tuple[tuple[State, Move], State]]:
    """Return the transitions of each state, in the order of the states' declaration."""
    order = list(State)
    return sorted(TABLE.items(), key=lambda entry: order.index(entry[0][0]))


def _arrows() -> dict[tuple[State, State], list[Move]]:
    """Return the arrows; transitions between the same two states share one."""
    arrows: dict[tuple[State, State], list[Move]] = {}
    for (state, move), after in _moves():
        arrows.setdefault((state, after), []).append(move)
    return arrows


def picture() -> str:
    arrows = _arrows()
    framed = [state for state in State if all((state, end) in arrows for end in ENDED)]
    drawn = Picture(title=describe(), width=1090, height=510)
    drawn.box(*FRAME, kind="open", radius=10)
    drawn.text(FRAME[0] + FRAME[2] / 2, FRAME[1] + 26, ", ".join(ENDINGS), "soft middle")
    for state in framed:
        drawn.arrow(INTO_THE_FRAME[state])
    words = [
        _arrow(drawn, state, after, ", ".join(moves))
        for (state, after), moves in arrows.items()
        if not (state in framed and after in ENDED)
    ]
    drawn.arrow([(10, 130), (PLACES[State.QUEUED][0] - BOX_WIDTH / 2, 130)])
    drawn.text(40, 120, "submit", "label middle")
    for state in State:
        _state(drawn, state)
    for x, y, label in words:
        drawn.text(x, y, label, "label middle")
    for y, kind, meaning in ((450, "end", "terminal"), (474, "held", "holds its devices")):
        drawn.box(24, y + 10, 18, 14, kind=kind, radius=3)
        drawn.text(50, y + 22, meaning, "soft")
    return drawn.svg()


def _state(drawn: Picture, state: State) -> None:
    x, y = PLACES[state]
    kind = "held" if state in HOLDS_DEVICES else "end" if state in TERMINAL else ""
    drawn.box(x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2, BOX_WIDTH, BOX_HEIGHT, kind=kind)
    drawn.text(x, y + 5, state, "name middle")


def _arrow(drawn: Picture, state: State, after: State, label: str) -> tuple[float, float, str]:
    """Draw an arrow and return the place of its text: the first part that is long enough."""
    here, there = PLACES[state], PLACES[after]
    points = ROUTES.get((state, after)) or (_border(here, there), _border(there, here))
    drawn.arrow(points)
    (x1, y1), (x2, y2) = next(
        part
        for part in pairwise(points)
        if abs(part[0][0] - part[1][0]) + abs(part[0][1] - part[1][1]) >= LONG_ENOUGH
    )
    return (x1 + x2) / 2, (y1 + y2) / 2 + (-8 if y1 == y2 else 4), label


def _border(middle: Point, towards: Point) -> Point:
    """Return the point where a line from the centre of a box crosses its border."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    scale = min(
        BOX_WIDTH / 2 / abs(dx) if dx else float("inf"),
        BOX_HEIGHT / 2 / abs(dy) if dy else float("inf"),
    )
    return middle[0] + dx * scale, middle[1] + dy * scale


def describe() -> str:
    """Return a text alternative of the picture."""
    way = [State.QUEUED, State.GRANTED, State.STARTING, State.RUNNING, State.STOPPING]
    ends = ", ".join(state for state in State if state in TERMINAL)
    return (
        f"The states of a request and the transitions between them: {', '.join(way)}, then one of "
        f"{ends}; with the ways back to the queue. The tables below contain the same."
    )


def _states() -> Iterator[str]:
    for state in State:
        marks = ("yes" if state in those else "" for those in (HOLDS_DEVICES, MAY_RUN, TERMINAL))
        yield f"| {state} | {' | '.join(marks)} |"


def main() -> None:
    for path, text in ((PAGE, page()), (PICTURE, picture())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"Wrote {path}")


if __name__ == "__main__":
    main()
