"""Run the notebook of a sweep once for all trials, whose values it gets as lists."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from nbformat import NotebookNode

from ....hub.attempts.reports import read_reports
from ....hub.attempts.spec import OUTPUT
from ....hub.attempts.trials import TrialState, notebook_name, reports_name
from ....hub.records.requests import CauseCode
from ..attempt.outcome_messages import AttemptOutcome
from ..notebook.output_file import NotebookFile
from .executor import SweepExecutor
from .plan import SweepPlan
from .stage_run import StageRun, StageTask

if TYPE_CHECKING:
    from pathlib import Path

    from .attempt import SweepAttempt

TRIAL_REPORTS_VARIABLE: Final = "CARREL_TRIAL_REPORTS"
"""Names the file of each trial for ``carrel.report``, one a line."""


def joint_task(plan: SweepPlan, numbers: Collection[int]) -> StageTask:
    """Return the task of a run of all cells for these trials."""
    return StageTask(
        trials=tuple(numbers),
        first=0,
        after=plan.cells,
        assigned=plan.joint_values(numbers),
        assigned_before=plan.injection,
        last=True,
    )


class JointRun(StageRun):
    """The run of all cells for several trials; the notebook of the job is its own."""

    def __init__(self, sweep: SweepAttempt, plan: SweepPlan, numbers: Collection[int]) -> None:
        super().__init__(sweep, plan, joint_task(plan, numbers), None)
        self.output = sweep.folder / OUTPUT
        self._reports_of = {number: sweep.folder / reports_name(number) for number in numbers}

    def copy_for(self, number: int) -> None:
        """Write the notebook of a trial, as far as the run has come."""
        assert self.manager is not None
        notebook = copy.deepcopy(self.manager.nb)
        values = {"parameters": dict(self.plan.trials[number].values)}
        notebook.metadata["papermill"] = {**notebook.metadata.papermill, **values}
        notebook.metadata["carrel"] = self._about(number)
        NotebookFile(self.files / notebook_name(number), notebook).finish()

    def reported(self, number: int) -> dict[str, float]:
        path = self._reports_of[number]
        return {name: each.last for name, each in read_reports(path.parent, path.name).items()}

    # -- private --------------------------------------------------------------------------

    def _notebook(self) -> NotebookNode:
        return self.plan.notebook_with(self.task.assigned)

    def _begin_notebook(self, client: Any) -> None:
        super()._begin_notebook(client)
        del client.nb.metadata["carrel"]["trial"]

    def _variables(self) -> dict[str, str]:
        files = "\n".join(map(str, self._reports_of.values()))
        return {**super()._variables(), TRIAL_REPORTS_VARIABLE: files}

    @property
    def _own_folder(self) -> Path:
        return self.files

    def _prepare_files(self) -> None:
        super()._prepare_files()
        for path in self._reports_of.values():
            path.unlink(missing_ok=True)


class JointExecutor(SweepExecutor):
    """Runs the trials that are left as one; a trial that a user stops has ended at once."""

    def __init__(self, sweep: SweepAttempt, plan: SweepPlan, done: int) -> None:
        super().__init__(sweep, plan, done)
        self._run: JointRun | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: set[int] = set()

    async def run(self, left: Collection[int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._show("")
        before = [number for number in left if number in self.stopped]
        self._end(before, TrialState.STOPPED)
        numbers = [number for number in left if number not in self._ended]
        if not numbers:
            return
        self._run = JointRun(self.sweep, self.plan, numbers)
        try:
            await self._ran(self._run, ())
        finally:
            await self._close(self._run)

    def stop_trials(self, numbers: frozenset[int]) -> None:
        super().stop_trials(numbers)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._end_stopped)

    def _end_stopped(self) -> None:
        """Record the trials that were stopped; on a full disk, when the run ends."""
        run = self._run
        if run is None or run not in self.open or run.manager is None:
            return
        numbers = [number for number in run.task.trials if number in self.stopped]
        if len(numbers) < len(run.task.trials):  # otherwise the kernel is killed
            with suppress(OSError):
                self._end_with(run, numbers, TrialState.STOPPED)

    def _judge(self, run: StageRun, found: AttemptOutcome) -> bool:
        assert isinstance(run, JointRun)
        stopped = [number for number in run.task.trials if number in self.stopped]
        self._end_with(run, stopped, TrialState.STOPPED)
        left = [number for number in run.task.trials if number not in self._ended]
        if found.code is CauseCode.SUCCEEDED:
            self._end_with(run, left, TrialState.SUCCEEDED)
        else:
            self._end_with(run, left, TrialState.FAILED, found.message)
            self.failed = [(number, found) for number in left]
        return False

    def _end_with(
        self, run: JointRun, numbers: Iterable[int], state: TrialState, message: str = ""
    ) -> None:
        ending = [number for number in numbers if number not in self._ended]
        for number in ending:
            run.copy_for(number)
        self._end(ending, state, run, message)

    def _end(
        self,
        numbers: Collection[int],
        state: TrialState,
        run: JointRun | None = None,
        message: str = "",
    ) -> None:
        if numbers:
            self._record(numbers, state, run, message)
            self._ended.update(numbers)
