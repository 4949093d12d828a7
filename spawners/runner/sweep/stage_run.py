"""Run one stage of a sweep: a kernel, the cells of the stage, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.log import logger

from ....hub.attempts.reports import read_reports
from ....hub.attempts.spec import FILES, OUTPUT
from ....hub.attempts.trials import files_name, notebook_name, reports_name
from ....hub.messages.units import duration
from ....hub.records.requests import CauseCode
from ....hub.sweeps.stage_tree import Stage
from ....hub.sweeps.trials import Scalar
from ..attempt.log import Log
from ..attempt.outcome_messages import AttemptOutcome
from ..attempt.reporter import EventReporter
from ..kernels.fork_client import ForkRefused
from ..kernels.start import START_TIMEOUT_SECONDS
from ..notebook.attempt import NotebookAttempt
from ..notebook.engine import NotebookManager, Stopped
from ..notebook.output_file import NotebookFile
from .disk_space import with_space
from .plan import SweepPlan, code_indexes
from .stage_client import StageClient

if TYPE_CHECKING:
    from .attempt import SweepAttempt

_NOT_RUN: Final[dict[str, Any]] = dict.fromkeys(("exception", "start_time", "end_time", "duration"))
"""What papermill records of a cell that has not run."""
REPORTS_VARIABLE: Final = "CARREL_REPORTS"
OUTPUT_VARIABLE: Final = "CARREL_OUTPUT_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTask:
    """The cells that a stage runs.

    Attributes:
        trials: numbers of the trials that share them.
        first, after: indexes among the code cells: of the first one, and of the one after the last.
        assigned: values to assign before cell ``assigned_before``.
        last: whether the notebook ends with them.
    """

    trials: tuple[int, ...]
    first: int
    after: int
    assigned: Mapping[str, Scalar | list[Scalar]]
    assigned_before: int
    last: bool

    @property
    def name(self) -> str:
        """Return what the log calls it."""
        more = len(self.trials) - 1
        return f"trial {self.trials[0]}" + (f" and {more} more" if more else "")


def stage_task(stage: Stage) -> StageTask:
    """Return the task of a stage of the tree."""
    return StageTask(
        trials=stage.trials,
        first=stage.first,
        after=stage.after,
        assigned=stage.assigned,
        assigned_before=stage.assigned_before,
        last=not stage.children,
    )


def whole_task(plan: SweepPlan, number: int) -> StageTask:
    """Return the task of a trial that runs all cells itself."""
    return StageTask(
        trials=(number,),
        first=0,
        after=plan.cells,
        assigned=plan.trials[number].values,
        assigned_before=plan.injection,
        last=True,
    )


def rest_task(plan: SweepPlan, number: int, shared: Stage) -> StageTask:
    """Return the task of a trial that runs all cells after those that it shares."""
    values = plan.trials[number].values
    return StageTask(
        trials=(number,),
        first=shared.after,
        after=plan.cells,
        assigned={name: value for name, value in values.items() if name not in shared.values},
        assigned_before=max(shared.after, plan.injection),
        last=True,
    )


class TrialLog(Log):
    """Passes text on to the log of the job; each line begins with the name of the stage."""

    def __init__(self, log: Log, name: str) -> None:
        self._to, self._prefix, self._open = log, f"[{name}] ", False

    def write(self, text: str, missing: int = 0) -> None:
        for line in text.splitlines(keepends=True):
            self._to.write(line if self._open else f"{self._prefix}{line}", missing)
            self._open, missing = not line.endswith("\n"), 0

    def tail(self, characters: int) -> str:
        return self._to.tail(characters)


class StageRun(NotebookAttempt):
    """A stage as an execution of its own, after that of its parent.

    Attributes:
        seconds: what its cells took, those of earlier stages included.
        refused: why its kernel cannot be forked; empty if it can.
        pruned: why a search has stopped it early; empty if it has not.
    """

    def __init__(
        self, sweep: SweepAttempt, plan: SweepPlan, task: StageTask, parent: StageRun | None
    ) -> None:
        log = TrialLog(sweep.log, task.name)
        reporter = EventReporter(_unreported, sweep.order.limits)
        super().__init__(_unreported, sweep.order, sweep.folder, reporter, log)
        self.plan, self.task, self.parent = plan, task, parent
        self.stopping, self.fork_server = sweep.stopping, sweep.fork_server
        self.counter = sweep.counter
        self.seconds: float = 0.0 if parent is None else parent.seconds
        self.stage_client: StageClient | None = None
        self._limit = 0
        self._timed_out = False
        self.refused = self.pruned = ""
        self._fork_error: DeadKernelError | RuntimeError | None = None
        number = task.trials[0]
        shared = f"reports-{task.first}-{number}.jsonl"
        self.reports = sweep.folder / (reports_name(number) if task.last else shared)
        self.files = sweep.folder / FILES
        if task.last or parent is not None:
            self.output = self.files / notebook_name(number)
        else:
            self.output = sweep.folder / OUTPUT

    async def fork(self) -> None:
        """Fork the kernel of the parent, which need not wait for the turn of the stage.

        Raises:
            ForkRefused: it cannot be forked.
        """
        client = self._made_client()
        try:
            await self._open(client, {})
        except (DeadKernelError, RuntimeError) as raised:
            self._fork_error = raised

    async def run(self, environment: Mapping[str, str], *, limit: int) -> AttemptOutcome:
        """Run the cells; the kernel stays.

        Args:
            environment: variables of the kernel.
            limit: seconds that a trial may take up to here; 0 for no limit.

        Raises:
            ForkRefused: the kernel of the parent cannot be forked.
            Stopped, Halted: no further cell may run.
        """
        self._limit = limit
        forked = self.stage_client
        client = forked or self._made_client()
        self._begin_notebook(client)
        error: BaseException | None = None
        try:
            if self._fork_error is not None:
                raise self._fork_error
            if forked is None:
                await self._open(client, environment)
            elif environment:
                await client.assign(f"__import__('os').environ.update({dict(environment)!r})")
            await self._run_cells(client)
        except (DeadKernelError, RuntimeError) as raised:
            error = raised
            await self._find_exit()
        if self.stopping.is_set():
            raise Stopped  # the kernel was killed: that is no result of the cells
        found = self._outcome(error)
        if self.task.last or found.code is not CauseCode.SUCCEEDED:
            await with_space(self.stopping, partial(self.conclude, found))
        else:
            client.nb_man.settle()
        return found

    async def close(self) -> None:
        """End the kernel, and leave the files of each trial in place."""
        if self.stage_client is not None:
            with suppress(DeadKernelError, RuntimeError):
                await self.stage_client.close()
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)  # what the cells have left behind
        if not self.task.last:
            self.reports.unlink(missing_ok=True)
        for number in self.task.trials:
            with suppress(OSError):
                (self.files / files_name(number)).rmdir()  # if it is empty

    def copy_to_all(self) -> None:
        """Write the notebook and the reported values of each trial that has come no further."""
        for number in self.task.trials[1 if self.task.last else 0 :]:
            self._copy_for(number)

    def _copy_for(self, number: int) -> None:
        assert self.manager is not None
        notebook, about = self.plan.trial_notebook(number), self.manager.nb.metadata
        values = {"parameters": dict(self.plan.trials[number].values)}
        notebook.metadata.update(
            {**about, "papermill": {**about.papermill, **values}, "carrel": self._about(number)}
        )
        code = set(code_indexes(notebook))
        for index, cell in enumerate(notebook.cells):
            status = self.manager.PENDING if index in code else self.manager.COMPLETED
            cell.metadata["papermill"] = _NOT_RUN | {"status": status}
        take_over(self.manager.nb, notebook, self.task.after)
        NotebookFile(self.files / notebook_name(number), notebook).finish()
        if self.reports.exists():
            shutil.copyfile(self.reports, self.reports.with_name(reports_name(number)))

    def reported(self, number: int) -> dict[str, float]:
        """Return the last value of each name that the cells have reported for a trial."""
        found = read_reports(self.reports.parent, self.reports.name)
        return {name: series.last for name, series in found.items()}

    # -- private --------------------------------------------------------------------------

    def _notebook(self) -> NotebookNode:
        task = self.task
        return self.plan.trial_notebook(task.trials[0]) if task.last else self.plan.stage_notebook()

    def _made_client(self) -> StageClient:
        self.manager = NotebookManager(self._notebook(), self)
        client = self.client = self.stage_client = StageClient(
            self.manager,
            kernel_name=self.plan.kernel.name,
            startup_timeout=START_TIMEOUT_SECONDS,
            timeout=None,
            log=logger,
            raise_on_iopub_timeout=False,
        )
        client.fork_server = self.fork_server
        return client

    def _begin_notebook(self, client: StageClient) -> None:
        manager, notebook = client.nb_man, client.nb
        manager.notebook_start()
        if self.task.last:
            notebook.metadata["carrel"] = self._about(self.task.trials[0])
        code = set(code_indexes(notebook))
        for index, cell in enumerate(notebook.cells):
            if index not in code:
                manager.skip_text(cell, index)
        if self.parent is not None and self.parent.manager is not None:
            take_over(self.parent.manager.nb, notebook, self.task.first)
            manager.done = self.task.first

    def _about(self, number: int) -> dict[str, Any]:
        assert self.manager is not None
        return {**self.manager.nb.metadata["carrel"], "trial": number}

    async def _open(self, client: StageClient, environment: Mapping[str, str]) -> None:
        variables = {**environment, **self._variables()}
        await with_space(self.stopping, self._prepare_files)
        parent = self.parent
        if parent is not None and parent.refused:
            raise ForkRefused(parent.refused)
        if parent is None or parent.stage_client is None:
            return await client.open({**os.environ, **variables})
        # Where no cell has seeded a generator, each branch has its own numbers.
        fresh = self.plan.is_unseeded(parent.task.after)
        await client.open_branch(parent.stage_client, variables, fresh=fresh)

    def _variables(self) -> dict[str, str]:
        """Return the variables that say where the cells report and write files."""
        found = {REPORTS_VARIABLE: str(self.reports)}
        return found | ({OUTPUT_VARIABLE: str(self._own_folder)} if self.task.last else {})

    @property
    def _own_folder(self) -> Path:
        return self.files / files_name(self.task.trials[0])

    def _prepare_files(self) -> None:
        if self.task.last:
            self._own_folder.mkdir(exist_ok=True)
        self.reports.unlink(missing_ok=True)
        if self.parent is not None and self.parent.reports.exists():
            shutil.copyfile(self.parent.reports, self.reports)

    async def _run_cells(self, client: StageClient) -> None:
        task = self.task
        indexes = code_indexes(client.nb)
        code = self.plan.assignment(task.assigned) if task.assigned else ""
        if task.assigned_before < task.first and code:
            await client.assign(code)
        for cell in range(task.first, task.after):
            if cell == task.assigned_before and code:
                await client.assign(code)
            began = time.monotonic()
            timer = self._timer(client)
            try:
                await client.run_cell(indexes[cell])
            finally:
                self.seconds += time.monotonic() - began
                if timer is not None:
                    timer.cancel()
            if self.failure is not None:
                return
        if task.assigned_before >= task.after and code:
            await client.assign(code)

    def _timer(self, client: StageClient) -> asyncio.TimerHandle | None:
        if not self._limit:
            return None
        left = max(0.0, self._limit - self.seconds)
        return asyncio.get_running_loop().call_later(left, self._time_out, client)

    def _time_out(self, client: StageClient) -> None:
        self._timed_out = True
        if client.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(client.process.pid, signal.SIGKILL)

    async def _find_exit(self) -> None:
        """Ask the parent how the kernel, its fork, has ended."""
        parent = None if self.parent is None else self.parent.stage_client
        if parent is None or self.process is None:
            return
        status = await parent.exit_of(self.process.pid)
        if status is not None:
            self.process.returncode = status

    def _outcome(self, error: BaseException | None) -> AttemptOutcome:
        manager = self.manager
        if self._timed_out and manager is not None:
            return AttemptOutcome(
                code=CauseCode.TIME_LIMIT,
                message=f"it took longer than the limit of a trial, {duration(self._limit)}, in "
                f"{manager.place(manager.current)}",
            )
        found = self.judge(error)
        if self.pruned and found.code is CauseCode.KERNEL_DIED:
            return replace(found, message=self.pruned)
        return found


def take_over(before: NotebookNode, notebook: NotebookNode, cells: int) -> None:
    """Copy what the first code cells have shown in an earlier stage."""
    pairs = zip(code_indexes(before), code_indexes(notebook), strict=True)
    for number, (old, new) in enumerate(pairs):
        if number >= cells:
            break
        source, target = before.cells[old], notebook.cells[new]
        target.outputs = source.outputs
        target.execution_count = source.execution_count
        for name in ("papermill", "execution"):
            if name in source.metadata:
                target.metadata[name] = dict(source.metadata[name])


def _unreported(kind: str, data: Mapping[str, object]) -> None:
    """Drop an event of one stage: the sweep reports how far its trials are."""
