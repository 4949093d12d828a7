"""Run the trials of a search: each slot asks for the values of its next trial when it is free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ....hub.attempts.reports import ReportFollower, read_reports
from ....hub.attempts.trials import TrialRecord, TrialState, reports_name
from ....hub.records.requests import CauseCode
from ....hub.sweeps.stage_tree import Stage
from ..attempt.outcome_messages import AttemptOutcome
from ..kernels.fork_client import ForkRefused
from ..notebook.engine import Halted, Stopped
from .executor import SweepExecutor, all_of
from .plan import SweepPlan
from .search import Points, Search
from .stage_run import StageRun, StageTask, rest_task, stage_task, whole_task

if TYPE_CHECKING:
    from .attempt import SweepAttempt

_PAUSE_SECONDS: Final = 0.5
"""Between two looks at what a trial has reported."""


class SearchExecutor(SweepExecutor):
    """Shares the cells that no searched parameter can change, and forks each trial from there."""

    def __init__(
        self, sweep: SweepAttempt, plan: SweepPlan, done: int, records: Collection[TrialRecord]
    ) -> None:
        """Build the study again from what earlier attempts have recorded.

        Args:
            done: how many trials have ended.
            records: of these, and of the others whose values have been chosen.
        """
        super().__init__(sweep, plan, done)
        assert plan.search is not None
        self._search = Search(plan.search, maximize=self.order.maximize)
        self._values = {one.number: one.values for one in records if one.values}
        self._followers: dict[int, ReportFollower] = {}
        ended = [one for one in records if one.state is not TrialState.WAITING]
        self._search.replay(ended, self.order.objective, self._earlier_points)

    async def run(self, left: Collection[int]) -> None:
        self._show("")
        root = None if self.plan.tree is None else self.plan.tree.root
        numbers = iter(sorted(left))
        if root is None or not root.children:
            await self._trials(numbers, None, None)
            return
        shared = StageRun(self.sweep, self.plan, stage_task(root), None)
        try:
            if await self._ran(shared, ()):
                await self._trials(numbers, root, shared)
        finally:
            await self._close(shared)

    async def _trials(
        self, numbers: Iterator[int], root: Stage | None, shared: StageRun | None
    ) -> None:
        await all_of(self._slot(numbers, root, shared) for _ in range(self.order.parallel))

    async def _slot(
        self, numbers: Iterator[int], root: Stage | None, shared: StageRun | None
    ) -> None:
        """Run one trial after the other; the slots take the numbers in turn."""
        try:
            for number in numbers:
                self._check_stop()
                if number in self.stopped:
                    self._record([number], TrialState.STOPPED)
                else:
                    await self._chosen_trial(number, root, shared)
        except (Stopped, Halted):
            raise
        except BaseException:
            self._broken = True
            raise

    async def _chosen_trial(self, number: int, root: Stage | None, shared: StageRun | None) -> None:
        self._values[number] = values = self._search.begin(number, self._values.get(number))
        self.plan = self.plan.with_values(number, values)
        whole = whole_task(self.plan, number)
        if root is None or shared is None or shared.refused:
            await self._trial(whole, None)
            return
        try:
            await self._trial(rest_task(self.plan, number, root), shared)
        except ForkRefused:
            await self._trial(whole, None)

    async def _trial(self, task: StageTask, shared: StageRun | None) -> None:
        """Run a trial to its end, or until the search stops it."""
        run = StageRun(self.sweep, self.plan, task, shared)
        try:
            async with self._watched(run):
                await self._ran(run, task.trials)
        except ForkRefused as refused:
            await self._give_up(run, str(refused))
            raise
        finally:
            await self._close(run)

    @asynccontextmanager
    async def _watched(self, run: StageRun) -> AsyncIterator[None]:
        if not self._search.prunes:
            yield
            return
        watch = asyncio.create_task(self._watch(run))
        try:
            yield
        finally:
            watch.cancel()
            (error,) = await asyncio.gather(watch, return_exceptions=True)
        if isinstance(error, Exception):
            raise error

    async def _watch(self, run: StageRun) -> None:
        """Stop a trial as soon as its reported values are worse than those of others."""
        (number,) = run.task.trials
        name = self.order.objective
        follower = ReportFollower(run.reports.parent, run.reports.name, name)
        self._followers[number] = follower
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            points = follower.new_points()
            if points and self._search.report(number, points):
                run.pruned = f"It was stopped early, at step {points[-1][0]}."
                run.kill()
                return

    def _judge(self, run: StageRun, found: AttemptOutcome) -> bool:
        if run.task.last:
            own = found.code in (CauseCode.SUCCEEDED, CauseCode.CELL_ERROR)
            if not run.pruned or own or self.stopped.issuperset(run.task.trials):
                return super()._judge(run, found)
            self._record(run.task.trials, TrialState.PRUNED, run, run.pruned)
            self.pruned += 1
            return False
        if found.code is CauseCode.SUCCEEDED and run.failure is None:
            return True
        if found.code is CauseCode.SUCCEEDED:
            ended = "a cell that all trials share ends the notebook, so that none has a result"
            found = AttemptOutcome(code=CauseCode.CELL_ERROR, message=ended)
        # The notebook of the job shows it: no trial has begun.
        self.failed += [(number, found) for number in run.task.trials]
        return False

    def _record(
        self,
        trials: Iterable[int],
        state: TrialState,
        run: StageRun | None = None,
        message: str = "",
    ) -> list[TrialRecord]:
        numbers = list(trials)
        if state is TrialState.RUNNING:
            return super()._record(numbers, state, run, message)
        for number in numbers:
            if number in self._followers:
                self._search.report(number, self._followers[number].new_points())
        records = super()._record(numbers, state, run, message)
        for record in records:
            if record.number in self._search:
                reported = record.reported.get(self.order.objective)
                self._search.end(record.number, state, reported)
        return records

    def _line(self, record: TrialRecord) -> TrialRecord:
        follower = self._followers.get(record.number)
        return replace(
            record,
            values=self._values.get(record.number, {}),
            steps=0 if follower is None else follower.seen,
        )

    def _earlier_points(self, number: int) -> Points:
        found = read_reports(self.sweep.folder, reports_name(number)).get(self.order.objective)
        return () if found is None else list(zip(found.steps, found.values, strict=True))
