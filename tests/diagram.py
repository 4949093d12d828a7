"""Draws docs/reference/lifecycle.md from the lifecycle table: ``python -m tests.diagram``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from carrel.hub.scheduling.lifecycle import HOLDS_DEVICES, MAY_RUN, TABLE, TERMINAL, State

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "lifecycle.md"

INTRODUCTION = """\
# The life of a request

Sessions, kernels, jobs and grading are all requests, and every request lives by this table.
A move that is not in it is refused and changes nothing. Every accepted request reaches exactly
one of the terminal states and stays there.

This page is drawn from the table in `hub/scheduling/lifecycle.py`; after a change there, run
`python -m tests.diagram`.
"""


def page() -> str:
    """The whole page."""
    diagram = "\n".join(_diagram())
    return "\n".join(
        [
            INTRODUCTION,
            f"```mermaid\n{diagram}\n```\n",
            "## States\n",
            "| state | holds its devices | processes may exist | terminal |",
            "| --- | --- | --- | --- |",
            *_states(),
            "\n## Moves\n",
            "| from | move | to |",
            "| --- | --- | --- |",
            *(f"| {state} | {move} | {after} |" for (state, move), after in _moves()),
            "",
        ]
    )


def _moves() -> list[tuple[tuple[str, str], str]]:
    """The table by state, in the order in which the states are declared."""
    order = list(State)
    return sorted(
        (((str(state), str(move)), str(after)) for (state, move), after in TABLE.items()),
        key=lambda entry: order.index(State(entry[0][0])),
    )


def _diagram() -> Iterator[str]:
    """Moves that lead from one state to the same other one share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, move), after in _moves():
        arrows.setdefault((state, after), []).append(move)
    yield "stateDiagram-v2"
    yield f"    [*] --> {State.QUEUED}: submit"
    for (state, after), moves in arrows.items():
        yield f"    {state} --> {after}: {', '.join(moves)}"
    for state in State:
        if state in TERMINAL:
            yield f"    {state} --> [*]"


def _states() -> Iterator[str]:
    for state in State:
        marks = ("yes" if state in those else "" for those in (HOLDS_DEVICES, MAY_RUN, TERMINAL))
        yield f"| {state} | {' | '.join(marks)} |"


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")


if __name__ == "__main__":
    main()
