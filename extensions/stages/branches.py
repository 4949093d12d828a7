"""The tree of schedules: a branch per distinct prefix of values, cut where other schedules leave.

A branch begins at a step with values that stay constant, and has no end of its own: a schedule
leaves it where its values change, or where the trial ends. Schedules with the same values up to a
step are on the same branch there. What runs as a unit is a stage: the steps of a branch between two
cuts, that is, between two steps at which a schedule leaves it. A later schedule may add cuts.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .step_schedule import StepSchedule, Value


@dataclass(slots=True, eq=False)
class ScheduleBranch:
    """Steps with constant values after a prefix of other values.

    Attributes:
        key: digest of the values of all steps from 0 on, the same in each process.
        first: its first step.
        values: of its steps; empty for the root, which has no steps.
        parent: the branch that it leaves at ``first``; None for the root.
        order: its place among the branches of the tree, by the first schedule that uses it.
        done: steps before this one have run.
        reported: by name a value for each step from ``first`` to ``done``; None where the step
            has reported nothing under the name.
        cuts: steps at which a schedule leaves the branch, in ascending order.
        checkpoints: steps before which a checkpoint has been made; it may have been removed.
    """

    key: str
    first: int
    values: Mapping[str, Value]
    parent: ScheduleBranch | None = None
    order: int = 0
    done: int = 0
    reported: dict[str, list[float | None]] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    checkpoints: set[int] = field(default_factory=set)
    children: dict[tuple[int, str], ScheduleBranch] = field(default_factory=dict)

    def cut(self, step: int) -> None:
        if step not in self.cuts:
            bisect.insort(self.cuts, step)

    def add(self, values: list[dict[str, float]]) -> None:
        """Append what further steps have reported."""
        count = self.done - self.first
        for name in {name for each in values for name in each}:
            self.reported.setdefault(name, [None] * count)
        for name, column in self.reported.items():
            column += [each.get(name) for each in values]
        self.done += len(values)

    def last(self, name: str, end: int) -> float | None:
        """Return the last value reported under a name before a step."""
        column = self.reported.get(name, ())[: end - self.first]
        return next((value for value in reversed(column) if value is not None), None)


class Position(NamedTuple):
    """The state of the training before a step, on a branch.

    At the first step of a branch it is the position of the parent, where it has one name only.
    """

    branch: ScheduleBranch
    step: int

    @property
    def key(self) -> str:
        at = self.canonical
        return f"{at.branch.key}-{at.step}"

    @property
    def canonical(self) -> Position:
        branch = self.branch
        while branch.parent is not None and branch.first == self.step:
            branch = branch.parent
        return Position(branch, self.step)


class BranchStage(NamedTuple):
    """Steps of a branch that run as a unit."""

    branch: ScheduleBranch
    first: int
    end: int

    @property
    def begin(self) -> Position:
        """Where what is left of it begins: behind its steps that have run."""
        return Position(self.branch, max(self.first, self.branch.done))

    @property
    def is_done(self) -> bool:
        return self.branch.done >= self.end


@dataclass(frozen=True, slots=True, eq=False)
class BranchPath:
    """The way of one trial through the tree: its branches, and the step at which it leaves each."""

    legs: tuple[tuple[ScheduleBranch, int], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """A key by which trials with a common prefix are neighbours: depth-first order."""
        return tuple(part for branch, end in self.legs for part in (branch.order, end))

    def stages(self, until: int) -> Iterator[BranchStage]:
        """Yield its stages up to a step, at which its branch has a cut."""
        for branch, end in self.legs:
            first = branch.first
            for step in branch.cuts:
                if step > min(end, until):
                    break
                yield BranchStage(branch, first, step)
                first = step

    def values(self, name: str, until: int) -> Iterator[tuple[int, float]]:
        """Yield the steps at which a name was reported, with its values."""
        for branch, end in self.legs:
            column = branch.reported.get(name, ())[: max(0, min(end, until) - branch.first)]
            for step, value in enumerate(column, branch.first):
                if value is not None:
                    yield step, value

    def last(self, name: str, until: int) -> float | None:
        for branch, end in reversed(self.legs):
            if branch.first < until:
                value = branch.last(name, min(end, until))
                if value is not None:
                    return value
        return None


class BranchTree:
    """The branches of all schedules of a study.

    Args:
        key: digest of what the results depend on beside the schedules.
    """

    def __init__(self, key: str) -> None:
        self.root = ScheduleBranch(key=key, first=0, values={})
        self._all: list[ScheduleBranch] = []

    def __iter__(self) -> Iterator[ScheduleBranch]:
        return iter(self._all)

    def add(self, schedule: StepSchedule, steps: int) -> BranchPath:
        """Return the path of a schedule, with the branches and cuts that it needs."""
        legs: list[tuple[ScheduleBranch, int]] = []
        branch = self.root
        pieces = [piece for piece in schedule.pieces if piece.first < steps]
        ends = [*(piece.first for piece in pieces[1:]), steps]
        for piece, end in zip(pieces, ends, strict=True):
            branch = self._child(branch, piece.first, piece.key, piece.values)
            branch.cut(end)
            legs.append((branch, end))
        return BranchPath(tuple(legs))

    def _child(
        self, parent: ScheduleBranch, first: int, key: str, values: Mapping[str, Value]
    ) -> ScheduleBranch:
        found = parent.children.get((first, key))
        if found is None:
            digest = hashlib.sha256(f"{parent.key} {first} {key}".encode()).hexdigest()[:32]
            found = ScheduleBranch(
                key=digest,
                first=first,
                values=values,
                parent=parent,
                order=len(self._all),
                done=first,
            )
            self._all.append(found)
            parent.children[first, key] = found
        return found

    def steps(self) -> int:
        """Return the number of distinct steps of all schedules."""
        return sum(branch.cuts[-1] - branch.first for branch in self._all)
