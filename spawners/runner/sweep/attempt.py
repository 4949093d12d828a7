"""Run the attempt of a sweep: its trials, as far as they have not finished before."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ....hub.attempts.notebook_format import is_marimo
from ....hub.attempts.spec import OUTPUT
from ....hub.attempts.trials import (
    EARLIER_TRIALS,
    TrialRecord,
    TrialState,
    add_trials,
    finished_trials,
    read_stopped,
    read_trials,
)
from ....hub.messages.units import count, trained_as_one
from ....hub.records.requests import CauseCode
from ..attempt import outcome_messages as outcome
from ..attempt.outcome_messages import AttemptOutcome, StartFailed
from ..attempt.reporter import Report
from ..attempt.working_folder import working_folder
from ..notebook.attempt import NotebookAttempt, choose_kernel, load
from ..notebook.engine import Halted
from ..notebook.output_file import NotebookFile
from .executor import SweepExecutor
from .joint_run import JointExecutor
from .plan import SweepPlan, sweep_plan

_DESCRIPTORS: Final = 256
"""Open files of the runner, without those for each trial that runs."""
_DESCRIPTORS_OF_TRIAL: Final = 24
"""Sockets of the client of its kernel, and their events: about 20."""
_LISTS: Final = ". Each parameter that differs is a list, with one value a trial"


class SweepAttempt(NotebookAttempt):
    """Runs the notebook of an order once for each trial."""

    def __init__(self, report: Report, *shared: Any) -> None:
        super().__init__(report, *shared)
        self.executor: SweepExecutor | None = None

    def execute(self) -> None:
        order = self.order
        assert order.job.sweep is not None
        allow_descriptors(_DESCRIPTORS + _DESCRIPTORS_OF_TRIAL * (order.job.sweep.parallel + 1))
        cwd = working_folder(order, self.folder)
        self.observe(cwd)
        notebook = load(order)
        if is_marimo(notebook):
            raise StartFailed("a sweep runs a notebook with cells, not one of marimo")
        kernel = choose_kernel(order, notebook)
        earlier = read_trials(self.folder, EARLIER_TRIALS)
        before = {**earlier, **read_trials(self.folder)}
        done = finished_trials(earlier) | finished_trials(before)
        chosen = [
            TrialRecord(number=n, state=TrialState.WAITING, at=one.at, values=one.values)
            for n, one in before.items()
            if n not in done and one.values
        ]
        plan = sweep_plan(order.job.sweep, order.job.parameters, notebook, kernel, done)
        records = [*done.values(), *chosen]
        self.executor = executor_of(self, plan, len(done), records)
        (self.folder / OUTPUT).unlink(missing_ok=True)
        add_trials(self.folder, records)
        NotebookFile(self.folder / OUTPUT, plan.stage_notebook()).finish()
        os.chdir(cwd)
        numbers = range(1, order.job.sweep.trials + 1)
        left = [number for number in numbers if number not in done]
        if left:
            asyncio.run(self.executor.run(left))

    def judge(self, error: BaseException | None) -> AttemptOutcome:
        executor = self.executor
        if self.memory_used:
            return outcome.out_of_memory("", self.memory_used, self.order.job.memory_bytes)
        if isinstance(error, StartFailed):
            return outcome.invalid_job(str(error))
        if executor is None:
            return outcome.runner_failed(error)
        trials = count(executor.order.trials, "trial")
        if isinstance(error, Halted):
            return AttemptOutcome(
                code=CauseCode.HALTED, message=f"It stopped after {executor.done} of {trials}."
            )
        if error is not None:
            return outcome.runner_failed(error)
        if not executor.failed:
            numbers = {"stopped": len(executor.stopped), "stopped early": executor.pruned}
            some = " and ".join(f"{n} of them {how}" for how, n in numbers.items() if n)
            message = f"Ran {trials}; {some}." if some else f"Ran {trials}."
            return AttemptOutcome(code=CauseCode.SUCCEEDED, message=message)
        number, first = min(executor.failed, key=lambda found: found[0])
        if executor.order.together:
            failed = trained_as_one(len(executor.failed))
            lists = _LISTS if first.code is CauseCode.CELL_ERROR else ""
            return replace(first, message=f"{failed} failed: {first.message}{lists}")
        return AttemptOutcome(
            code=first.code,
            message=f"{len(executor.failed)} of {trials} failed. Trial {number}: {first.message}",
            details=first.details,
            memory=first.memory,
        )

    @property
    def failed(self) -> bool:
        return self.executor is not None and bool(self.executor.failed)

    def conclude(self, outcome: AttemptOutcome) -> None:
        """Leave the notebooks as they are: each trial has its own."""

    def check(self) -> None:
        super().check()
        if self.executor is not None:
            stopped = read_stopped(self.folder)
            if stopped:  # a kernel may have started since the last look
                self.executor.stop_trials(stopped)

    def report_step(self) -> None:
        """Leave the progress of single trials out."""

    def save(self) -> None:
        """Leave the open trials as they are: their notebooks are saved after each cell."""

    def interrupt(self) -> None:
        for run in self._open():
            if run.client is not None:
                run.client.shutdown_kernel = "immediate"
        super().interrupt()

    def _open(self) -> list[Any]:
        return [] if self.executor is None else list(self.executor.open)

    def _roots(self) -> tuple[int, ...]:
        running = [
            run.process.pid
            for run in self._open()
            if run.process is not None and run.process.poll() is None
        ]
        return os.getpid(), *running

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._roots()[1:]:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)


def allow_descriptors(wanted: int) -> None:
    """Let this process open so many files, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def executor_of(
    sweep: SweepAttempt, plan: SweepPlan, done: int, records: Collection[TrialRecord]
) -> SweepExecutor:
    """Return what runs the trials of a plan.

    Raises:
        StartFailed: it is a search, and Optuna is not installed.
    """
    if plan.together:
        return JointExecutor(sweep, plan, done)
    if plan.search is None:
        return SweepExecutor(sweep, plan, done)
    try:
        from .search_executor import SearchExecutor  # noqa: PLC0415  # it imports Optuna
    except ImportError as error:
        raise StartFailed(
            f"a search needs Optuna, which the environment of the job lacks ({error}): install the "
            "package optuna there, or choose an image that has it"
        ) from error
    return SearchExecutor(sweep, plan, done, records)
