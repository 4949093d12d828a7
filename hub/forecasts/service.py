"""Keep the predictor of the running service up to date; the scheduling loop never waits for it."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from ..errors import CarrelError
from ..files.private_file import write_private
from ..insight.model_fit import FEWEST
from ..insight.past_runs import PastRun, PlannedRun, usable
from ..insight.predictor import Prediction, RunTimePredictor, replay
from ..insight.remaining_time import CellHistory, CellPosition, remaining_of_run
from ..insight.run_time_model import RunTimeModel
from ..interfaces.clock import Clock
from ..interfaces.run_times import RemainingTime, RunTimeForecast
from ..interfaces.store import Store
from ..records.requests import NewRequest, RequestFilter, RequestRecord, SweepOrder
from ..runtime.progress_cache import ProgressCache
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL, State
from .fit_process import MODULE
from .job_cells import (
    LOOKED_BACK,
    CellTimesRecorder,
    keys_of_sources,
    position_of,
    taken_over_seconds,
)
from .job_history import as_json, past_run, plan_of, plan_of_trial
from .step_times import remaining_of_steps
from .sweep_times import is_of_same_code, is_of_unlike_jobs, remaining_of_sweep, sweep_forecast

log = logging.getLogger(__name__)

EVERY_SECONDS = 30.0
"""Seconds between two looks at the jobs, which read the whole queue. Jobs that the controller ends
are learned from at once."""
FIT_EVERY = 86_400.0
FIT_TIMEOUT = 900.0
_STOP_SECONDS = 2.0
"""Most seconds until the thread sees that the service ends."""
OVERLAP_SECONDS = 60.0
"""Jobs submitted so long before the last refresh are read again; each is learned once."""
_CALIBRATED = 2000
"""Number of newest runs by which the intervals are widened at the start; the older ones are only
learned from."""
_MOST = 50_000
_PAGE = 1000
_LIVE = frozenset(State) - TERMINAL
_PLAUSIBLE = 4.0
"""The queue uses a remaining time whose upper bound is at most so many times the lower one."""
_CLOSE_SECONDS = 60.0
"""Bounds that differ by less are always used."""
_CHANGED = 0.05
"""A revised run time that differs by a smaller share is not taken over: each change makes the
scheduler place its requests again."""


@dataclass(slots=True, eq=False)
class JobRunTimes:
    """Predicts run times of jobs: loads the history once, then learns from each job that ends.

    Every forecast of a live job is remembered, so that its outcome corrects the intervals. Nothing
    of this is stored but the model: after a restart it is built again from the history.

    One thread calls ``load``, ``refresh`` and ``fit``, and changes the predictor under the lock.
    Others read under the lock; that thread reads without it, so that no other thread has to
    wait for its many forecasts.

    Attributes:
        progress: how far running jobs are.
        model_file: the newest model.
        stopping: set when the service ends.
    """

    store: Store
    clock: Clock
    progress: ProgressCache
    model_file: Path
    stopping: threading.Event
    _predictor: RunTimePredictor | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _live: dict[str, Prediction] = field(default_factory=dict)
    _learned: set[str] = field(default_factory=set)
    _looked_at: float = 0.0
    _fitted_at: float | None = None
    _cells: CellHistory = field(default_factory=CellHistory)
    _revised: dict[tuple[str, float], float] = field(default_factory=dict)
    _ended: SimpleQueue[str] = field(default_factory=SimpleQueue)

    @property
    def _cell_times(self) -> CellTimesRecorder:
        return CellTimesRecorder(self.store, self.progress)

    def start(self) -> None:
        threading.Thread(target=self._run, name="run-times", daemon=True).start()

    def forecast(self, request: NewRequest | RequestRecord, now: float) -> RunTimeForecast | None:
        plan = plan_of(request, now)
        with self._lock:
            if self._predictor is None or plan is None:
                return None
            return self._forecast(request, plan, now)

    def _forecast(
        self, request: NewRequest | RequestRecord, plan: PlannedRun, now: float
    ) -> RunTimeForecast:
        """Return the run time of a job; that of a sweep of new code by its notebook alone."""
        assert self._predictor is not None
        found = self._predictor.predict(plan, running=len(self._live)).forecast
        trial = plan_of_trial(request, now)
        if trial is None or is_of_same_code(found):
            return found
        assert request.job is not None
        assert request.job.sweep is not None
        alone = self._predictor.predict(trial, running=len(self._live)).forecast
        return self._sweep_forecast(request, request.job.sweep, alone, plan.limit) or found

    def _sweep_forecast(
        self,
        request: NewRequest | RequestRecord,
        sweep: SweepOrder,
        alone: RunTimeForecast,
        limit: float,
    ) -> RunTimeForecast | None:
        """Return the run time of a sweep, by the cells of the owner's runs or of the notebook."""
        seconds: Sequence[float] = ()
        if sweep.stages is not None:
            keys = keys_of_sources(request.owner, sweep.stages.hashes)
            seconds = self._cells.typical(keys) or sweep.stages.recorded
        return sweep_forecast(sweep, alone, limit, seconds)

    def remaining(self, record: RequestRecord, now: float) -> RemainingTime | None:
        """Return what the times of cells say, or what the run time says if that is closer.

        Cells of attempts with the same parameters are always preferred. Of a run that goes on with
        saved work, what earlier attempts took for that work counts as if it had run in this one. If
        that is not known, it is told by its cells only: it need not take a whole run time.
        """
        lease = record.lease
        if record.kind is not Kind.JOB or record.state is not State.RUNNING or lease is None:
            return None
        left = max(0.0, lease.granted_at + record.seconds - now)
        cells = self.progress.cells_of(record)
        position = position_of(record, cells, now)
        before = taken_over_seconds(cells) if lease.epoch > 1 else 0.0
        again = lease.epoch > 1 or (record.job is not None and bool(record.job.resumes))
        plan = None if before is None else plan_of(record, record.submitted_at)
        ran = now - lease.granted_at + (before or 0.0)
        with self._lock:
            if self._predictor is None:
                return None
            if position is not None and not position.ahead:
                return RemainingTime(seconds=0.0, low=0.0, high=min(left, 1.0), by_cells=True)
            found = None if position is None else self._cells.remaining(position)
            sure = position is not None and self._cells.knows_conditions(position)
            if plan is not None and not (found is not None and sure):
                forecast = self._forecast_made(record, plan)
                if forecast.basis is not None:
                    whole = remaining_of_run(forecast, ran)
                    found = whole if found is None or _width(whole) < _width(found) else found
        if record.job is not None and record.job.sweep is not None:
            step = None if (shown := self.progress.of(record)) is None else shown.step
            elapsed = now - lease.granted_at
            found = (None if again else remaining_of_sweep(step, elapsed)) or found
        if not again and (found is None or is_of_unlike_jobs(found)):
            found = self._by_steps(record, position, now) or found
        if found is None:
            return RemainingTime(seconds=left, low=0.0, high=left)
        return replace(
            found,
            seconds=min(left, found.seconds),
            low=min(left, found.low),
            high=min(left, found.high),
        )

    def _by_steps(
        self, record: RequestRecord, position: CellPosition | None, now: float
    ) -> RemainingTime | None:
        """Return what a command, or the last cell of a notebook, has left by its own progress."""
        loops, shown = self.progress.loops_of(record), self.progress.of(record)
        if loops is None or shown is None or record.job is None:
            return None
        in_last_cell = (
            position is not None and len(position.ahead) == 1 and loops.cell == shown.current
        )
        return remaining_of_steps(loops.whole, now) if record.job.command or in_last_cell else None

    def _forecast_made(self, record: RequestRecord, plan: PlannedRun) -> RunTimeForecast:
        """Return the forecast of a live job that is remembered, else a new one.

        The remembered one of a sweep is not that of its trials.
        """
        made = self._live.get(record.id)
        if made is None or record.job is None or record.job.sweep is not None:
            return self._forecast(record, plan, record.submitted_at)
        return made.forecast

    def _by_cells(self, record: RequestRecord, now: float) -> RemainingTime | None:
        """Return what the times of cells alone say of a running job; None for a sweep, too."""
        if record.state is not State.RUNNING or record.job is None or record.job.sweep is not None:
            return None
        position = position_of(record, self.progress.cells_of(record), now)
        if position is None:
            return None
        if not position.ahead:
            return RemainingTime(seconds=0.0, low=0.0, high=1.0, by_cells=True)
        with self._lock:
            return self._cells.remaining(position)

    def revised_seconds(self) -> Mapping[tuple[str, float], float]:
        return self._revised

    def cell_pace(self, ended: RequestRecord, now: float) -> tuple[float, float] | None:
        cells = self.progress.cells_of(ended)
        # Cells of an earlier attempt ran on the devices of that attempt.
        own = None if cells is None else replace(cells, earlier=())
        position = position_of(ended, own, now)
        if position is None:
            return None
        with self._lock:
            return self._cells.expected(position.done, position.conditions)

    def load(self) -> None:
        """Build the predictor from the model file and the whole history."""
        # Live jobs first: one that ends meanwhile is in both lists, not in none.
        live = self.store.requests(RequestFilter(kind=Kind.JOB, states=_LIVE, limit=_MOST))
        ended = dict(self.history())
        predictor = RunTimePredictor(self._model())
        runs = [run for run in ended.values() if run is not None]
        submitted = sorted(run.plan.at for run in runs)[-_CALIBRATED:]
        trained = predictor.model.trained_until if predictor.model else 0.0
        for _ in replay(predictor, runs, since=max([trained, *submitted[:1]])):
            pass
        cells = self._cell_times.history(list(ended)[:LOOKED_BACK])
        with self._lock:
            self._cells = cells
            self._predictor = predictor
            self._learned, self._live = set(ended), {}
        self._begin(live)

    def refresh(self) -> None:
        """Learn from the jobs that have ended since, and predict those that are new.

        If that fails, no run time stays revised: the queue expects what it did before.
        """
        try:
            self._refresh()
        except Exception:
            self._revised = {}
            raise

    def _refresh(self) -> None:
        now = self.clock()
        live = self.store.requests(RequestFilter(kind=Kind.JOB, states=_LIVE, limit=_MOST))
        # A clock that was set back leaves no gap.
        since = min(self._looked_at, now) - OVERLAP_SECONDS
        short = self.store.requests(
            RequestFilter(kind=Kind.JOB, states=TERMINAL, since=since, limit=_MOST)
        )
        present = {each.id for each in live}
        gone = frozenset(self._live) - present - {each.id for each in short}
        ended = self.store.requests(RequestFilter(ids=gone, limit=len(gone))) if gone else ()
        self._learn_all([*ended, *short])
        self._begin(live)
        self.progress.reserve(sum(each.state is State.RUNNING for each in live))
        self._revise(live, now)
        self._looked_at = now

    def _revise(self, live: Sequence[RequestRecord], now: float) -> None:
        """Revise the run times that the queue expects of running jobs, where cells tell them."""
        revised: dict[tuple[str, float], float] = {}
        for each in live:
            found = None if each.lease is None else self._by_cells(each, now)
            if found is None or each.lease is None:
                continue
            close = found.high - found.low <= _CLOSE_SECONDS
            if not close and found.high > _PLAUSIBLE * found.low:
                continue
            ran = now - each.lease.granted_at
            # The scheduler doubles what has passed before the next look revises it.
            seconds = ran + max(found.seconds, 2 * EVERY_SECONDS)
            key = (each.id, each.lease.granted_at)
            before = self._revised.get(key)
            close = before is not None and abs(seconds - before) <= _CHANGED * before
            kept = before is not None and close and before > ran + EVERY_SECONDS
            revised[key] = before if before is not None and kept else seconds
        self._revised = revised

    def learn(self, request_id: str) -> None:
        self._ended.put(request_id)

    def learn_ended(self) -> None:
        """Learn from the jobs that ``learn`` has named, without a look at the queue."""
        names = {self._ended.get() for _ in range(self._ended.qsize())}
        if names:
            self._learn_all(self.store.requests(RequestFilter(ids=frozenset(names), limit=_MOST)))

    def _learn_all(self, ended: Sequence[RequestRecord]) -> None:
        """Learn from each of these jobs that has ended, once."""
        new: list[RequestRecord] = []
        with self._lock:
            for each in sorted(ended, key=lambda each: each.ended_at or 0.0):
                if each.ended_at is not None and each.id not in self._learned:
                    self._learn(each)
                    new.append(each)
        times = self._cell_times.store_ended(new)
        with self._lock:
            for found in times:
                self._cells.observe(found)

    def _learn(self, ended: RequestRecord) -> None:
        assert self._predictor is not None
        self._learned.add(ended.id)
        prediction = self._live.pop(ended.id, None)
        run = past_run(ended)
        for found in usable([run] if run is not None else []):
            self._predictor.observe(found, prediction)

    def _begin(self, live: Sequence[RequestRecord]) -> None:
        """Predict the live jobs that were not predicted yet."""
        assert self._predictor is not None
        for each in live:
            if each.id in self._live or each.id in self._learned:
                continue
            plan = plan_of(each, each.submitted_at)
            if plan is not None:
                running = len(self._live)
                self._live[each.id] = self._predictor.predict(plan, running=running)

    def fit(self) -> None:
        """Fit a new model in a process of its own, if the extra is installed and runs suffice."""
        runs = [run for _, run in self.history() if run is not None]
        if len(runs) < FEWEST or importlib.util.find_spec("sklearn") is None:
            return
        lines = "".join(json.dumps(as_json(run)) + "\n" for run in runs)
        done = subprocess.run(
            [sys.executable, "-P", "-m", MODULE],
            input=lines,
            capture_output=True,
            text=True,
            timeout=FIT_TIMEOUT,
            check=False,
        )
        if done.returncode:
            log.warning("no new model of run times: %s", done.stderr.strip()[-500:])
        elif done.stdout:
            write_private(self.model_file, done.stdout)
            self.load()

    def _run(self) -> None:
        while not self.stopping.is_set():
            try:
                if self._predictor is None:
                    self.load()
                self.refresh()
                if self._fit_is_due():
                    self.fit()
                self._wait()
            except Exception:  # advice: the service goes on without it
                log.exception("run times are not predicted for now")
                if self.stopping.wait(60.0):
                    return

    def _wait(self) -> None:
        """Wait until the next look at the queue, and learn from the jobs that end meanwhile."""
        until = time.monotonic() + EVERY_SECONDS
        while not self.stopping.is_set() and (left := until - time.monotonic()) > 0:
            try:
                name = self._ended.get(timeout=min(left, _STOP_SECONDS))
            except Empty:
                continue
            self._ended.put(name)
            self.learn_ended()

    def _fit_is_due(self) -> bool:
        now = self.clock()
        if self._fitted_at is None:
            written = self.model_file.stat().st_mtime if self.model_file.exists() else 0.0
            self._fitted_at = min(written, now)
        due = now - self._fitted_at >= FIT_EVERY
        if due:
            self._fitted_at = now
        return due

    def _model(self) -> RunTimeModel | None:
        """Return the model of the file; without a usable one None, which is said once."""
        try:
            return RunTimeModel.from_json(self.model_file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, CarrelError) as error:
            log.warning("%s: ignored, a new one follows. %s", self.model_file, error)
            self.model_file.unlink(missing_ok=True)
            return None

    def history(self) -> Iterator[tuple[str, PastRun | None]]:
        """Yield the newest jobs that have ended, each with its run if it says something."""
        before: str | None = None
        for _ in range(_MOST // _PAGE):
            which = RequestFilter(kind=Kind.JOB, states=TERMINAL, before=before, limit=_PAGE)
            page = self.store.requests(which)
            for each in page:
                run = past_run(each)
                yield each.id, next(usable([run] if run is not None else []), None)
            if len(page) < _PAGE or self.stopping.is_set():
                return
            before = page[-1].id


def _width(found: RemainingTime) -> float:
    """Return how uncertain a remaining time is, as a ratio."""
    return (found.high + 1.0) / (found.low + 1.0)
