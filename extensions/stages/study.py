"""A study: trials whose common steps run once, each stage from the checkpoint of its parent."""

from __future__ import annotations

import html
import math
import operator
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runtime import checkpoint
from ..runtime.progress import progress
from ..runtime.report import real_number, report
from .branches import BranchPath, BranchTree, Position
from .checkpoint_store import CheckpointStore
from .stage_records import StageRecords
from .state_snapshot import TrainingState, own_random_states
from .step_schedule import StepSchedule, step_schedule
from .study_text import study_text

Step = Callable[[Any, dict[str, Any], int], Any]

_SAVE_SECONDS = 300.0
"""After so long within a stage of a job, its state is saved."""
_LOOK_SECONDS = 0.2
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
        folder: Path | None,
        keep: bool,
        memory: int,
        disk: int,
    ) -> None:
        self._start, self._step, self._seed = start, step, seed
        self._steps, self._prune = steps, dict(sorted(prune.items()))
        self._objective, self._maximize = objective, maximize
        self._tree = BranchTree(key)
        self._tree.root.checkpoints.add(0)
        self._trials: list[StudyTrial] = []
        self._names: frozenset[str] = frozenset()
        self._needed: Counter[str] = Counter()
        """By checkpoint: how many stages still start from it."""
        self._durable = folder is not None
        self._store = CheckpointStore(
            folder, memory=memory, disk=disk, needed=self._needed, keep=keep
        )
        self._records = StageRecords(folder)
        self._state: TrainingState | None = None
        self._at: str | None = None
        """The position of the state, None if it is unknown."""
        self._run = self._found = self._completed = 0
        self._least = math.inf
        """The best objective so far, as a score."""
        self._looked = self._saved_at = self._shown = 0.0
        self._notified = False

    # What is read

    def trials(self) -> list[dict[str, Any]]:
        """Return a row for each trial: its number, schedule, steps, state and last values.

        >>> pandas.DataFrame(study.trials())
        """
        return [self._row(trial) for trial in self._trials]

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
        return self._row(ranked[0])

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
            run=self._run,
            found=self._found,
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

    def __getstate__(self) -> dict[str, Any]:
        """Leave the live state out of a copy, which goes on from checkpoints."""
        return self.__dict__ | {"_state": None, "_at": None}

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
        return [self._row(trial) for trial in self._trials[first:]]

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
                self._found += self._records.apply(branch)
            found.append(StudyTrial(number=number, schedule=schedule, path=path, steps=steps))
        return found

    def _run_to(self, until: int | None) -> None:
        """Run all trials that are not pruned to a step, or to their ends, depth first."""
        waiting = [each for each in self._trials if each.state == "waiting"]
        self._plan(waiting)
        for count, trial in enumerate(sorted(waiting, key=lambda each: each.path.order), 1):
            end = trial.steps if until is None else min(until, trial.steps)
            for stage in trial.path.stages(end):
                if not stage.is_done:
                    text = f"trial {count} of {len(waiting)}"
                    self._run_stage(stage.begin, stage.end, text)
            trial.reached = end
            if end == trial.steps:
                trial.state = "complete"
                self._complete(trial)

    def _plan(self, waiting: Sequence[StudyTrial]) -> None:
        """Count for each checkpoint the stages that still start from it."""
        stages = {
            (id(stage.branch), stage.end): stage.begin.key
            for trial in waiting
            for stage in trial.path.stages(trial.steps)
            if not stage.is_done
        }
        self._needed.clear()
        self._needed.update(stages.values())

    def _run_stage(self, begin: Position, end: int, text: str) -> None:
        self._go_to(begin)
        branch, key = begin.branch, begin.key
        values: list[dict[str, float]] = []
        self._saved_at = time.monotonic()
        for number in range(begin.step, end):
            values.append(self._call(Position(branch, number)))
            if number + 1 == end or self._should_save():
                after = Position(branch, number + 1)
                if number + 1 < end:
                    self._needed[after.key] += 1  # what is left of the stage starts there
                self._keep(after)
                self._records.write(branch, values)
                branch.add(values)
                values = []
                self._needed[key] -= 1
                key = after.key
                if self._durable:
                    checkpoint.saved()
            if number + 1 == end or time.monotonic() > self._shown + _LOOK_SECONDS:
                self._shown = time.monotonic()
                progress(self._run + self._found, self._tree.steps(), text)

    def _should_save(self) -> bool:
        """Whether a notice has come, or the last checkpoint of a job is old."""
        now = time.monotonic()
        if not self._durable or now < self._looked + _LOOK_SECONDS:
            return False
        self._looked = now
        notified = checkpoint.notice() is not None
        due = notified > self._notified or now > self._saved_at + _SAVE_SECONDS
        self._notified = notified
        if due:
            self._saved_at = now
        return due

    def _go_to(self, target: Position) -> None:
        """Bring the state to a position: from its checkpoint, or from an earlier one."""
        if self._at == target.key:
            return
        if self._state is None:
            self._state = TrainingState(self._start, self._seed)
            first = Position(self._tree.root, 0)
            if not self._restored(first):  # of an earlier attempt of the job
                self._at = first.key
                self._keep(first)
        missing: list[Position] = []
        for place in _back_from(target):
            if self._at == place.key or self._restored(place):
                break
            missing.append(place)
        else:
            self._state = TrainingState(self._start, self._seed)
        for place in reversed(missing):
            if place.step:
                self._call(Position(place.branch, place.step - 1))
            if self._needed[place.key]:
                self._keep(place)

    def _restored(self, place: Position) -> bool:
        """Go back to a checkpoint; False if there is none, or none that can be read."""
        at = place.canonical
        copied = self._store.get(at.key) if at.step in at.branch.checkpoints else None
        if copied is None or self._state is None:
            return False
        self._at = None
        try:
            self._state.restore(copied)
        except (pickle.UnpicklingError, EOFError):
            return False
        self._at = at.key
        return True

    def _keep(self, place: Position) -> None:
        assert self._state is not None
        self._store.put(place.key, self._state.snapshot())
        at = place.canonical
        at.branch.checkpoints.add(at.step)

    def _call(self, at: Position) -> dict[str, float]:
        """Run one step; return what it reports."""
        assert self._state is not None
        self._at = None
        values = dict(at.branch.values)
        try:
            answer = self._state.run(self._step, values, at.step)
            found = _reported(answer, self._objective or "value")
        except Exception as error:
            error.add_note(f"in step {at.step} with {at.branch.values}")
            raise
        self._run += 1
        self._at = Position(at.branch, at.step + 1).key
        return found

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

    def _row(self, trial: StudyTrial) -> dict[str, Any]:
        names = dict.fromkeys(name for branch in self._tree for name in branch.reported)
        return {
            "trial": trial.number,
            "state": trial.state,
            "steps": trial.reached,
            **trial.schedule.columns(),
            **{name: trial.path.last(name, trial.reached) for name in names},
        }

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


def _back_from(target: Position) -> Iterator[Position]:
    """Yield the positions from a target back to the first step."""
    branch, step = target
    while branch.parent is not None:
        for number in range(step, branch.first, -1):
            yield Position(branch, number)
        branch, step = branch.parent, branch.first
    yield Position(branch, 0)


def _reported(found: Any, name: str) -> dict[str, float]:
    if found is None:
        return {}
    if isinstance(found, Mapping):
        return {str(each): real_number(value) for each, value in found.items()}
    return {name: real_number(found)}
