"""A study: trials whose common steps run once, each stage from the checkpoint of its parent."""

from __future__ import annotations

import html
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..runtime.report import report
from .branches import BranchPath, BranchTree
from .checkpoint_store import CheckpointFiles
from .stage_runner import StageRunner, Step
from .state_snapshot import own_random_states
from .step_schedule import StepSchedule, step_schedule
from .study_text import study_text

_CURVES, _CURVE_VALUES = 10, 20_000
"""The most trials, and values of all trials, for which the page of a job has a curve each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """Steps of a study.

    Attributes:
        alone: that the trials would run one by one, each to the step that it has reached.
        tree: distinct ones among them, the fewest possible.
        run: that this process has run.
        found: that an earlier attempt of the job had run.
    """

    alone: int
    tree: int
    run: int
    found: int

    @property
    def saved(self) -> float:
        """The part of the steps that sharing has saved, from 0 to 1."""
        return 1 - (self.run + self.found) / self.alone if self.alone else 0.0


@dataclass(slots=True, kw_only=True)
class StudyTrial:
    """A schedule and how far it has run.

    Attributes:
        number: from 1, in the order in which the schedules were given.
        steps: where it ends.
        reached: steps before this one have run.
        state: ``waiting``, ``complete`` or ``pruned``.
    """

    number: int
    schedule: StepSchedule
    path: BranchPath
    steps: int
    reached: int = 0
    state: str = "waiting"


class StageStudy:
    """The trials of ``carrel.stages``; it runs them, and more with ``extend``."""

    def __init__(
        self,
        start: Callable[[], Any],
        step: Step,
        *,
        key: str,
        steps: int,
        objective: str,
        maximize: bool,
        prune: Mapping[int, int],
        seed: int,
        files: CheckpointFiles,
    ) -> None:
        self._steps, self._prune = steps, dict(sorted(prune.items()))
        self._objective, self._maximize = objective, maximize
        self._tree = BranchTree(key)
        self._runner = StageRunner(
            start,
            step,
            seed=seed,
            tree=self._tree,
            value_name=objective or "value",
            files=files,
        )
        self._trials: list[StudyTrial] = []
        self._names: frozenset[str] = frozenset()
        self._completed = 0
        self._least = math.inf
        """The best objective so far, as a score."""

    # What is read

    def trials(self) -> list[dict[str, Any]]:
        """Return a row for each trial: its number, schedule, steps, state and last values.

        >>> pandas.DataFrame(study.trials())
        """
        return self._rows(self._trials)

    @property
    def best(self) -> dict[str, Any]:
        """The row of the trial with the best objective; the longer trial, or the first of equals.

        Raises:
            ValueError: no trial has a value of the objective other than NaN.
        """
        self._needs_objective("best")
        ranked = [each for each in self._ranked(self._trials) if self._score(each) < math.inf]
        if not ranked:
            raise ValueError(
                f"No trial has a best {self._objective}: all values are NaN or infinite."
            )
        return self._rows(ranked[:1])[0]

    @property
    def saved(self) -> StepCounts:
        """The steps that were run, beside those that trial by trial would run."""
        reached = [(trial.path, trial.reached) for trial in self._trials]
        stages = {
            (id(stage.branch), stage.end): stage.end - stage.first
            for path, until in reached
            for stage in path.stages(until)
        }
        return StepCounts(
            alone=sum(until for _, until in reached),
            tree=sum(stages.values()),
            run=self._runner.steps_run,
            found=self._runner.steps_found,
        )

    def curve(self, number: int, name: str = "") -> list[tuple[int, float]]:
        """Return the steps and values that a trial has reported, as pairs.

        Args:
            number: of the trial, from 1.
            name: of the value; without one, the objective.
        """
        trial = self._trials[number - 1]
        return list(trial.path.values(name or self._objective, trial.reached))

    def __str__(self) -> str:
        ends = {trial.number: (trial.path, self._end(trial)) for trial in self._trials}
        return study_text(self._tree, ends, self.saved)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    # What runs

    def extend(
        self, schedules: Sequence[Mapping[str, Any]], *, steps: int | None = None
    ) -> list[dict[str, Any]]:
        """Run further trials, which branch off from the tree; return their rows.

        Args:
            schedules: as for ``carrel.stages``.
            steps: of each of these trials, if other than the study's.

        Raises:
            TypeError, ValueError: a schedule is malformed.
            Exception: what ``start`` or ``step`` raises, with a note on where it did.
        """
        steps = self._steps if steps is None else checked_count(steps, "steps")
        first = len(self._trials)
        self._trials += self._added(schedules, steps)
        with own_random_states():
            for rung, count in self._prune.items():
                if any(each.state == "waiting" for each in self._trials):
                    self._run_to(rung)
                    self._drop(rung, count)
            self._run_to(None)
        return self._rows(self._trials[first:])

    def _added(self, given: Sequence[Mapping[str, Any]], steps: int) -> list[StudyTrial]:
        if isinstance(given, Mapping | str) or not isinstance(given, Sequence):
            raise TypeError(
                "schedules is a list of dicts, such as "
                f'[{{"lr": 0.1}}, {{"lr": [(0, 0.1), (50, 0.01)]}}], not {type(given).__name__}.'
            )
        if not given:
            raise ValueError("There are no schedules: pass a list with at least one.")
        begin = len(self._trials) + 1
        checked = [step_schedule(each, number, steps) for number, each in enumerate(given, begin)]
        names = self._names or frozenset(checked[0].parts)
        for number, schedule in enumerate(checked, begin):
            if schedule.parts.keys() != names:
                raise ValueError(
                    f"Schedule {number} has the parameters {', '.join(sorted(schedule.parts))}; "
                    f"all schedules have the same ones, here {', '.join(sorted(names))}."
                )
        self._names = names
        found = []
        for number, schedule in enumerate(checked, begin):
            path = self._tree.add(schedule, steps)
            for branch, end in path.legs:
                for rung in self._prune:
                    if branch.first < rung < end:
                        branch.cut(rung)
            self._runner.find(path)
            found.append(StudyTrial(number=number, schedule=schedule, path=path, steps=steps))
        return found

    def _run_to(self, until: int | None) -> None:
        """Run all trials that are not pruned to a step, or to their ends, depth first."""
        waiting = [each for each in self._trials if each.state == "waiting"]
        self._runner.plan(stage for each in waiting for stage in each.path.stages(each.steps))
        for count, trial in enumerate(sorted(waiting, key=lambda each: each.path.order), 1):
            end = trial.steps if until is None else min(until, trial.steps)
            for stage in trial.path.stages(end):
                if not stage.is_done:
                    self._runner.run(stage, f"trial {count} of {len(waiting)}")
            trial.reached = end
            if end == trial.steps:
                trial.state = "complete"
                self._complete(trial)

    # Objective, pruning, reports

    def _drop(self, rung: int, count: int) -> None:
        """Prune all trials that have reached a rung, except the best ones."""
        beyond = [each for each in self._trials if each.steps > rung and each.reached >= rung]
        for trial in self._ranked(beyond, rung)[count:]:
            if trial.state == "waiting":
                trial.state = "pruned"

    def _ranked(self, trials: Sequence[StudyTrial], until: int | None = None) -> list[StudyTrial]:
        return sorted(
            trials, key=lambda each: (self._score(each, until), -each.reached, each.number)
        )

    def _score(self, trial: StudyTrial, until: int | None = None) -> float:
        """Return the objective of a trial, so that less is better; NaN is the worst."""
        value = trial.path.last(self._objective, self._end(trial, until))
        if value is None or math.isnan(value):
            return math.inf
        return -value if self._maximize else value

    def _end(self, trial: StudyTrial, until: int | None = None) -> int:
        return trial.reached if until is None else min(until, trial.reached)

    def _complete(self, trial: StudyTrial) -> None:
        """Report a finished trial to the page of the job."""
        if not self._objective:
            return
        if trial.path.last(self._objective, trial.reached) is None:
            raise ValueError(
                f"No step of trial {trial.number} has returned {self._objective}: step() returns "
                f'its value, or a dict such as {{"{self._objective}": value}}.'
            )
        self._completed += 1
        self._least = min(self._least, self._score(trial))
        if self._least < math.inf:
            value = -self._least if self._maximize else self._least
            report(self._objective, value, self._completed)
        if len(self._trials) <= _CURVES and len(self._trials) * self._steps <= _CURVE_VALUES:
            name = f"{self._objective[:80]}, trial {trial.number}"
            for step, value in self.curve(trial.number):
                report(name, value, step)

    def _rows(self, trials: Sequence[StudyTrial]) -> list[dict[str, Any]]:
        names = dict.fromkeys(name for branch in self._tree for name in branch.reported)
        return [
            {
                "trial": trial.number,
                "state": trial.state,
                "steps": trial.reached,
                **trial.schedule.columns(),
                **{name: trial.path.last(name, trial.reached) for name in names},
            }
            for trial in trials
        ]

    def _needs_objective(self, what: str) -> None:
        if not self._objective:
            raise ValueError(f'{what} needs an objective, such as stages(…, objective="loss").')


def checked_count(value: Any, name: str) -> int:
    """Return a number from 1 on. Raises TypeError or ValueError."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}.") from None
    if found < 1 or isinstance(value, bool):
        raise ValueError(f"{name} is a whole number from 1 on, not {value!r}.")
    return found
