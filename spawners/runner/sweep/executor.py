"""Run the stages of a sweep, some at a time, each in a fork of the kernel of its parent."""

from __future__ import annotations

import asyncio
import heapq
import os
import time
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ....hub.attempts.trials import TrialRecord, TrialState, add_trials, read_stopped
from ....hub.messages.units import count
from ....hub.records.requests import CauseCode
from ....hub.sweeps.stage_tree import Stage
from ..attempt.outcome_messages import AttemptOutcome
from ..attempt.progress import ProgressStep
from ..kernels.fork_client import ForkRefused
from ..notebook.engine import Halted, Stopped
from .disk_space import with_space
from .plan import SweepPlan
from .stage_run import StageRun, stage_task, whole_task

if TYPE_CHECKING:
    from .attempt import SweepAttempt

Path: TypeAlias = tuple[int, ...]
"""The number of a stage among its siblings, after those of its parents; no two are equal."""
_FORKS_AHEAD: Final = 1
"""Trials whose kernel is forked while others run, so that no slot waits for it."""
_COUNTED_FROM_ZERO: Final = "HIP_VISIBLE_DEVICES"
"""It counts the devices that another variable leaves."""


class Slots:
    """Numbers from 0 that run stages; the stage with the smallest path gets the next free one.

    With the path of its parent at the beginning of its own, a stage comes before the siblings of
    its parent, so that few kernels are open at a time.
    """

    def __init__(self, number: int) -> None:
        self._free = list(range(number))
        self._waiting: list[tuple[Path, asyncio.Future[int]]] = []

    @asynccontextmanager
    async def one(self, path: Path) -> AsyncIterator[int]:
        slot = heapq.heappop(self._free) if self._free else await self._next(path)
        try:
            yield slot
        finally:
            if self._waiting:
                heapq.heappop(self._waiting)[1].set_result(slot)
            else:
                heapq.heappush(self._free, slot)

    async def _next(self, path: Path) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (path, future))
        return await future


class SweepExecutor:
    """Runs the trials that are left, and records how each one ended.

    Attributes:
        open: the stages whose kernels run.
        failed: number and outcome of the trials that failed.
        stopped: numbers of the trials that users have stopped.
        pruned: how many trials a search has stopped early.
    """

    def __init__(self, sweep: SweepAttempt, plan: SweepPlan, done: int) -> None:
        assert sweep.order.job.sweep is not None
        self.sweep, self.plan, self.order = sweep, plan, sweep.order.job.sweep
        self.open: set[StageRun] = set()
        self.failed: list[tuple[int, AttemptOutcome]] = []
        self.stopped = read_stopped(sweep.folder)
        self.done = done
        self.pruned = 0
        self._broken = False
        """Whether something else than a trial has failed: nothing more is started."""
        self._slots = Slots(self.order.parallel)
        self._forks = Slots(self.order.parallel + _FORKS_AHEAD)

    async def run(self, left: Collection[int]) -> None:
        """Run all trials to their end.

        Raises:
            Stopped, Halted: some have not run.
        """
        self._show("")
        if self.plan.tree is None:
            await self._each_alone(left, ())
        else:
            await self._stage(self.plan.tree.root, None, ())

    def stop_trials(self, numbers: frozenset[int]) -> None:
        """Stop trials; called from another thread."""
        self.stopped = numbers
        for run in list(self.open):
            if numbers.issuperset(run.task.trials):
                run.kill()

    async def _each_alone(self, trials: Iterable[int], path: Path) -> None:
        await all_of(self._alone(number, (*path, at)) for at, number in enumerate(trials))

    async def _stage(self, stage: Stage, parent: StageRun | None, path: Path) -> None:
        run = StageRun(self.sweep, self.plan, stage_task(stage), parent)
        try:
            try:
                if not await self._ran(run, path):
                    return
            except ForkRefused as refused:
                await self._give_up(run, str(refused))
                await self._each_alone(stage.trials, path)
                return
            await all_of(
                self._stage(child, run, (*path, at)) for at, child in enumerate(stage.children)
            )
        finally:
            await self._close(run)

    async def _give_up(self, run: StageRun, why: str) -> None:
        """Leave the kernel of the parent, which cannot be forked; it may hold device memory."""
        parent = run.parent
        assert parent is not None
        await self._close(run)
        if not parent.refused:
            parent.refused = why
            self.sweep.log.write(
                f"carrel: {parent.task.name}: the kernel cannot be forked, because {why}: "
                "each trial runs all cells\n"
            )
        if not any(other.parent is parent for other in self.open):
            await self._close(parent)

    async def _alone(self, number: int, path: Path) -> None:
        """Run a trial from the first cell to the last one."""
        run = StageRun(self.sweep, self.plan, whole_task(self.plan, number), None)
        try:
            await self._ran(run, path)
        finally:
            await self._close(run)

    async def _ran(self, run: StageRun, path: Path) -> bool:
        """Run a stage in a free slot; return whether further stages follow it."""
        try:
            if run.parent is None or not run.task.last:
                return await self._ran_in_slot(run, path)
            async with self._forks.one(path):
                self._check_stop()
                self.open.add(run)
                fork = asyncio.create_task(run.fork())
                try:
                    return await self._ran_in_slot(run, path, fork)
                finally:
                    await asyncio.gather(fork, return_exceptions=True)
        except (Stopped, Halted, ForkRefused):
            raise
        except BaseException:
            self._broken = True
            raise

    def _check_stop(self) -> None:
        if self.sweep.stopping.is_set() or self._broken:
            raise Stopped
        if self.sweep.is_halted():
            raise Halted

    async def _ran_in_slot(
        self, run: StageRun, path: Path, fork: asyncio.Task[None] | None = None
    ) -> bool:
        """Run a stage in a free slot, also if its kernel is still being forked: in this order."""
        async with self._slots.one(path) as slot:
            self._check_stop()
            if fork is not None:
                await fork
            if self.stopped.issuperset(run.task.trials):
                self._record(run.task.trials, TrialState.STOPPED)
                return False
            if run.task.last:
                begin = partial(self._record, run.task.trials, TrialState.RUNNING)
                await with_space(self.sweep.stopping, begin)
            self._show(run.task.name)
            self.open.add(run)
            shared = run.parent is None and not run.task.last
            environment = {} if shared else slot_environment(self.sweep, self.order.parallel, slot)
            found = await run.run(environment, limit=self.order.trial_seconds)
            if run.task.last and self.sweep.order.device_ids:
                await run.close()  # the next trial of this slot needs the memory of its devices
        goes_on = await with_space(self.sweep.stopping, partial(self._judge, run, found))
        self._show("")
        return goes_on

    def _judge(self, run: StageRun, found: AttemptOutcome) -> bool:
        """Record what a stage means for its trials; return whether further stages follow it.

        It is called again if the disk is full.
        """
        succeeded = found.code is CauseCode.SUCCEEDED
        # A cell that ends the notebook itself ends that of all its trials.
        if succeeded and not run.task.last and run.failure is None:
            return True
        run.copy_to_all()
        if succeeded:
            self._record(run.task.trials, TrialState.SUCCEEDED, run)
        elif self.stopped.issuperset(run.task.trials):
            self._record(run.task.trials, TrialState.STOPPED, run)
        else:
            self._record(run.task.trials, TrialState.FAILED, run, found.message)
            self.failed += [(number, found) for number in run.task.trials]
        return False

    async def _close(self, run: StageRun) -> None:
        await run.close()
        self.open.discard(run)

    def _record(
        self,
        trials: Iterable[int],
        state: TrialState,
        run: StageRun | None = None,
        message: str = "",
    ) -> list[TrialRecord]:
        seconds = 0.0 if run is None else run.seconds
        now = time.time()
        records = [
            self._line(
                TrialRecord(
                    number=number,
                    state=state,
                    at=now,
                    seconds=seconds,
                    message=message,
                    reported={} if run is None else run.reported(number),
                )
            )
            for number in trials
        ]
        add_trials(self.sweep.folder, records)
        if state is not TrialState.RUNNING:
            self.done += len(records)
        return records

    def _line(self, record: TrialRecord) -> TrialRecord:
        """Return what is recorded of a trial."""
        return record

    def _show(self, name: str) -> None:
        """Report how many trials have ended."""
        failed = f", {count(len(self.failed), 'failure')}" if self.failed else ""
        self.sweep.reporter.step(
            ProgressStep(done=self.done, of=self.order.trials, text=f"{name or 'trials'}{failed}")
        )


def slot_environment(sweep: SweepAttempt, parallel: int, slot: int) -> dict[str, str]:
    """Return the variables that show a slot its part of the devices."""
    devices = len(sweep.order.device_ids)
    share = devices // parallel
    if parallel == 1 or not share:
        return {}
    found = {}
    for name, value in os.environ.items():
        shown = value.split(",")
        if not name.endswith("_DEVICES") or len(shown) != devices:
            continue
        part = shown[slot * share : (slot + 1) * share]
        if name == _COUNTED_FROM_ZERO:
            part = shown[:share]
        found[name] = ",".join(part)
    return found


async def all_of(stages: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all of them; raise the first error, that of a stop last."""
    found = await asyncio.gather(*stages, return_exceptions=True)
    errors = [each for each in found if each is not None]
    for error in sorted(errors, key=lambda each: isinstance(each, Stopped | Halted)):
        raise error
