"""Run the stages of a tree, each from the checkpoint of its parent."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..runtime import checkpoint
from ..runtime.progress import progress
from ..runtime.report import real_number
from .branches import BranchPath, BranchStage, BranchTree, Position
from .checkpoint_store import CheckpointFiles, CheckpointStore
from .stage_records import StageRecords
from .state_snapshot import TrainingState

Step = Callable[[Any, dict[str, Any], int], Any]

_SAVE_SECONDS = 300.0
"""After so long within a stage of a job, its state is saved."""
_LOOK_SECONDS = 0.2


class StageRunner:
    """The live state of a study, its checkpoints and its records.

    Args:
        start: makes the state of step 0.
        step: runs one step.
        seed: of the random states before ``start``.
        tree: whose stages run; its branches are marked as done.
        value_name: of a number that a step returns without a name.
        files: where checkpoints are kept.

    Attributes:
        steps_run: by this process, those that ran again included.
        steps_found: in the records of an earlier attempt.
    """

    def __init__(
        self,
        start: Callable[[], Any],
        step: Step,
        *,
        seed: int,
        tree: BranchTree,
        value_name: str,
        files: CheckpointFiles,
    ) -> None:
        self._start, self._step, self._seed = start, step, seed
        self._tree, self._value_name = tree, value_name
        tree.root.checkpoints.add(0)
        self._needed: Counter[str] = Counter()
        """By checkpoint: how many stages still start from it."""
        self._durable = files.folder is not None
        self._store = CheckpointStore(files, needed=self._needed)
        self._records = StageRecords(files.folder)
        self._state: TrainingState | None = None
        self._at: str | None = None
        """The position of the state, None if it is unknown."""
        self.steps_run = self.steps_found = self._total = 0
        self._looked = self._saved_at = self._shown = 0.0
        self._notified = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave the live state out of a copy, which goes on from checkpoints."""
        return self.__dict__ | {"_state": None, "_at": None}

    def find(self, path: BranchPath) -> None:
        """Mark the stages of a path as done that an earlier attempt has run."""
        for branch, _ in path.legs:
            self.steps_found += self._records.apply(branch)

    def plan(self, stages: Iterable[BranchStage]) -> None:
        """Count for each checkpoint the stages that still start from it."""
        begins = {
            (id(stage.branch), stage.end): stage.begin.key for stage in stages if not stage.is_done
        }
        self._needed.clear()
        self._needed.update(begins.values())
        self._total = self._tree.steps()

    def run(self, stage: BranchStage, text: str) -> None:
        """Run what is left of a stage.

        Args:
            text: for the progress of the job.

        Raises:
            Exception: what ``start`` or ``step`` raises, with a note on where it did.
        """
        begin, end = stage.begin, stage.end
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
                progress(self.steps_run + self.steps_found, self._total, text)

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
            found = _reported(answer, self._value_name)
        except Exception as error:
            error.add_note(f"in step {at.step} with {at.branch.values}")
            raise
        self.steps_run += 1
        self._at = Position(at.branch, at.step + 1).key
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
