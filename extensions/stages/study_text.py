"""The tree of a study as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .branches import BranchPath, BranchTree, ScheduleBranch

if TYPE_CHECKING:
    from .study import StepCounts

_MOST_LINES = 60


def study_text(
    tree: BranchTree, ends: Mapping[int, tuple[BranchPath, int]], counts: StepCounts
) -> str:
    """Return a summary and the tree: a line per stage.

    Args:
        ends: by number the path of each trial, and the step that it has reached.
        counts: of the study.
    """
    steps = counts.run + counts.found
    head = (
        f"{_many(len(ends), 'trial')}: {steps:,} steps instead of {counts.alone:,}, "
        f"{100 * counts.saved:.0f} % saved."
    )
    lines = list(_Drawing(tree, ends).lines())
    if len(lines) > _MOST_LINES:
        left = len(lines) - _MOST_LINES
        lines = [*lines[:_MOST_LINES], f"… and {_many(left, 'stage')} more"]
    return "\n".join([head, "", *lines])


class _Drawing:
    def __init__(self, tree: BranchTree, ends: Mapping[int, tuple[BranchPath, int]]) -> None:
        self._trials: dict[tuple[int, int], list[int]] = {}
        """By branch and end of a stage, the trials that go through it."""
        self._next: dict[tuple[int, int], list[tuple[ScheduleBranch, int, int]]] = {}
        """The stages after a stage; those at the beginning after (0, 0)."""
        for number, (path, until) in ends.items():
            at = (0, 0)
            for stage in path.stages(until):
                key = id(stage.branch), stage.end
                if key not in self._trials:
                    self._next.setdefault(at, []).append(stage)
                self._trials.setdefault(key, []).append(number)
                at = key
        texts = {name: {str(each.values[name]) for each in tree} for name in _names(tree)}
        self._shown = [name for name, found in texts.items() if len(found) > 1] or list(texts)

    def lines(self) -> Iterator[str]:
        """Yield the stages, parents first."""
        stack = [(stage, "", "", "") for stage in reversed(self._next.get((0, 0), []))]
        while stack:
            (branch, first, end), indent, mark, below = stack.pop()
            key = id(branch), end
            yield f"{indent}{mark}{self._text(branch, first, end)}"
            children = self._next.get(key, [])
            for number, child in enumerate(reversed(children)):
                last = number == 0
                marks = ("└── ", "    ") if last else ("├── ", "│   ")
                stack.append((child, indent + below, *marks))

    def _text(self, branch: ScheduleBranch, first: int, end: int) -> str:
        trials = self._trials[id(branch), end]
        values = ", ".join(f"{name}={branch.values[name]}" for name in self._shown)
        steps = f"step {first}" if end == first + 1 else f"steps {first} to {end - 1}"
        who = f"trial {trials[0]}" if len(trials) == 1 else f"once for {len(trials)} trials"
        return f"{values}: {steps}, {who}"


def _names(tree: BranchTree) -> list[str]:
    return list(next(iter(tree)).values)


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
