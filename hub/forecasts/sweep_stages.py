"""How long a sweep runs whose trials share stages: the stages in the order in which they run."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..records.requests import SweepStages


@dataclass(frozen=True, slots=True)
class SweepCourse:
    """A sweep as it is expected to run.

    Attributes:
        seconds: until its last stage has ended.
        work: seconds of all stages; with one at a time these are the same.
        critical: numbers of the first and last cells of the stages that determine the end, in their
            order, and how many such stages follow each other.
    """

    seconds: float
    work: float
    critical: tuple[tuple[int, int, int], ...]


def sweep_course(
    stages: SweepStages, cell_seconds: Sequence[float], parallel: int
) -> SweepCourse | None:
    """Return the course of a sweep; None if the times do not fit its cells.

    As in the runner, ``parallel`` stages run at a time, a branch before the siblings of its stage.

    Args:
        cell_seconds: what each cell takes.
    """
    cells, found = len(stages.hashes), _each_run(stages)
    if len(cell_seconds) != cells or not found:
        return None
    took = [sum(cell_seconds[first:after]) for _, first, after in found]
    children: list[list[int]] = [[] for _ in found]
    for index, (parent, _, _) in enumerate(found):
        if parent >= 0:
            children[parent].append(index)
    # Parents come before their children, in depth: the index is the order of the runner.
    ready = [index for index, (parent, _, _) in enumerate(found) if parent < 0]
    running: list[tuple[float, int]] = []
    before: dict[int, int] = {}
    now, last = 0.0, -1
    while ready or running:
        while ready and len(running) < max(1, parallel):
            index = heapq.heappop(ready)
            before[index] = last
            heapq.heappush(running, (now + took[index], index))
        now, last = heapq.heappop(running)
        for child in children[last]:
            heapq.heappush(ready, child)
    return SweepCourse(now, sum(took), _critical(found, before, last))


def _each_run(stages: SweepStages) -> Sequence[tuple[int, int, int]]:
    """Return the stages as often as they run, each with the index of the one before it."""
    below: dict[int, list[int]] = {}
    for index, (parent, _, _, _) in enumerate(stages.stages):
        below.setdefault(parent, []).append(index)
    found: list[tuple[int, int, int]] = []
    # Those to append, the next one at the end: a stage, and the run that it follows.
    stack = [(index, -1) for index in below.get(-1, ())]
    while stack:
        index, before = stack.pop()
        _, first, after, _ = stages.stages[index]
        found.append((before, first, after))
        for child in reversed(below.get(index, ())):
            stack += [(child, len(found) - 1)] * stages.stages[child][3]
    return found


def _critical(
    runs: Sequence[tuple[int, int, int]], before: dict[int, int], last: int
) -> tuple[tuple[int, int, int], ...]:
    """Return the path to the last stage, each from the one whose end let it start."""
    path: list[tuple[int, int]] = []
    while last >= 0:
        _, first, after = runs[last]
        if first < after:
            path.append((first + 1, after))
        last = before[last]
    groups = itertools.groupby(reversed(path))
    return tuple((first, after, len(list(same))) for (first, after), same in groups)


def critical_text(critical: Sequence[tuple[int, int, int]]) -> str:
    """Return ``cells 1 to 3 → cells 4 to 6 (16 times)``."""
    return " → ".join(
        (f"cell {first}" if first == last else f"cells {first} to {last}")
        + (f" ({times} times)" if times > 1 else "")
        for first, last, times in critical
    )
