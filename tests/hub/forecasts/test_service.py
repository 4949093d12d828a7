"""Run times of the service: the history of the store, models in files, and advice."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from carrel.hub.attempts.notebook_format import code_cell_hashes
from carrel.hub.controller.retries import finish_attempt
from carrel.hub.forecasts.advice import run_time_sentence, suggested_limit
from carrel.hub.forecasts.job_history import as_json, from_json
from carrel.hub.forecasts.service import EVERY_SECONDS, JobRunTimes
from carrel.hub.insight.model_fit import FEWEST
from carrel.hub.insight.past_runs import PlannedRun
from carrel.hub.insight.predictor import Prediction, RunTimePredictor
from carrel.hub.insight.remaining_time import remaining_of_run
from carrel.hub.insight.run_time_model import RunTimeModel
from carrel.hub.interfaces.run_times import Basis, RunTimeForecast
from carrel.hub.records.events import NewEvent
from carrel.hub.records.identity import Viewer
from carrel.hub.records.json_value import Json
from carrel.hub.records.leases import Handle, LeaseRecord
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.presenter import RequestPresenter
from carrel.hub.requests.sweep_analysis.outline import SweepOutlines
from carrel.hub.requests.sweep_analysis.process import AnalysingProcess
from carrel.hub.requests.sweeps import TrialService
from carrel.hub.runtime.context import Context
from carrel.hub.runtime.limited_process import AT_ONCE
from carrel.hub.runtime.snapshots import SnapshotReader
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn
from carrel.hub.schemas.requests import RemainingOut
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, Clock, FakeHub, build, device
from ..insight.histories import steps_history
from ..notebooks import notebook


@dataclass
class Site:
    """A site with predicted run times, whose thread is not started."""

    context: Context
    run_times: JobRunTimes
    clock: Clock

    def submit(self, **more: object) -> str:
        return JobService(self.context).submit(STUDENT1, job(**more)).id

    def run_cells(
        self, request_id: str, *seconds: float, hashes: Sequence[str], taken_over: int = 0
    ) -> LeaseRecord:
        """Start a queued notebook, and finish cells that took so long; the next one then runs.

        The results of the first cells can be taken over from an earlier attempt.
        """
        store, clock = self.context.store, self.clock
        start = Start(request_id=request_id, devices=("SIM-0",))
        (lease,) = store.grant([start], now=clock(), lease_seconds=30)
        store.launch(lease.id, now=clock())
        handle = Handle(pid=1, started_at=clock())
        store.apply_to_lease(lease.id, lifecycle.start, handle, now=clock())
        self.report(lease, 1, "cells", cells=len(hashes), hashes=list(hashes))
        if taken_over:
            self.report(lease, 2, "resumed", cells=taken_over)
        for number, took in enumerate(seconds, start=taken_over + 1):
            self.report(lease, 2 * number, "cell_started", number=number)
            clock.now += took
            self.report(lease, 2 * number + 1, "cell_finished", number=number, seconds=took)
        done = taken_over + len(seconds)
        if done < len(hashes):
            self.report(lease, 1000, "cell_started", number=done + 1)
        return lease

    def lose(self, lease: LeaseRecord) -> None:
        """Let an attempt disappear; its request is queued again."""
        cause, now = Cause(code=CauseCode.LOST, message="Lost."), self.context.clock()
        self.context.store.apply_to_lease(
            lease.id, lifecycle.lose, cause, now=now, charge_until=now, requeue=True
        )
        self.context.progress.requeued(lease.request_id)

    def report(self, lease: LeaseRecord, seq: int, kind: str, **data: Json) -> None:
        event = NewEvent(seq=seq, at=self.context.clock(), kind=kind, data=data)
        AttemptReports(self.context).store_events(lease.id, [event])

    def succeed(self, lease: LeaseRecord) -> None:
        store, now = self.context.store, self.context.clock()
        cause = Cause(code=CauseCode.SUCCEEDED, message="All cells ran.")
        store.apply(lease.request_id, lifecycle.stop, State.SUCCEEDED, cause, now=now)
        store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)

    def remaining(self, request_id: str) -> RemainingOut | None:
        record = self.context.store.request(request_id)
        return RequestPresenter.of(self.context).one(record, Viewer(identity=STUDENT1)).remaining

    def end(self, request_id: str, seconds: float, code: CauseCode = CauseCode.SUCCEEDED) -> None:
        """Run a queued job for so long."""
        store, now = self.context.store, self.context.clock()
        start = Start(request_id=request_id, devices=("SIM-0",))
        (lease,) = store.grant([start], now=now, lease_seconds=30)
        store.launch(lease.id, now=now)
        state = State.SUCCEEDED if code is CauseCode.SUCCEEDED else State.CANCELLED
        cause, end = Cause(code=code, message="It ended."), now + seconds
        store.apply(request_id, lifecycle.stop, state, cause, now=end)
        store.apply_to_lease(lease.id, lifecycle.finish, now=end, charge_until=end)


def job(**more: object) -> JobIn:
    body = {"group": "cs101", "devices": 1, "seconds": 3600, "command": ["python", "train.py"]}
    return JobIn.model_validate(body | more)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    made = build(new_store(), backend, FakeHub(), clock, tmp_path)
    file = tmp_path / "run-time-model.json"
    run_times = JobRunTimes(made.store, clock, made.progress, file, threading.Event())
    return Site(replace(made, run_times=run_times), run_times, clock)


def test_a_dry_run_says_how_long_such_jobs_take(site: Site) -> None:
    service = JobService(site.context)
    assert service.dry_run(STUDENT1, job()).run_time is None
    site.end(site.submit(), 300)
    site.run_times.load()
    known = service.dry_run(STUDENT1, job()).run_time
    assert known is not None
    assert (known.seconds, known.basis, known.runs) == (300, "own_parameters", 1)
    assert known.low < 300 < known.high
    assert known.suggested_seconds is not None
    assert known.suggested_seconds > known.high
    other = service.dry_run(STUDENT2, job(seconds=60)).run_time
    assert other is not None
    assert (other.seconds, other.basis) == (60, "parameters")


def test_without_similar_jobs_the_time_limit_is_named(site: Site) -> None:
    site.run_times.load()
    unknown = JobService(site.context).dry_run(STUDENT1, job(seconds=1800)).run_time
    assert unknown is not None
    assert (unknown.seconds, unknown.basis, unknown.suggested_seconds) == (1800, None, None)
    assert unknown.sentence == ("Unknown: no earlier job is like this one. It may run for 30 min.")


def test_jobs_that_end_are_learned_once(site: Site) -> None:
    site.run_times.load()
    live = site.submit()
    site.run_times.refresh()
    site.end(live, 100)
    site.end(site.submit(), 200)  # it was never seen live
    for _ in range(2):
        site.run_times.refresh()
    known = JobService(site.context).run_time(STUDENT1, job())
    assert known is not None
    assert (known.seconds, known.runs) == (150, 2)


def test_a_page_need_not_wait_while_the_live_jobs_are_forecast(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.end(site.submit(), 300)
    live = site.context.store.request(site.submit())
    predict = RunTimePredictor.predict
    answers: list[RunTimeForecast | None] = []

    def predicts(known: RunTimePredictor, plan: PlannedRun, *, running: int = 0) -> Prediction:
        monkeypatch.undo()
        page = threading.Thread(target=lambda: answers.append(site.run_times.forecast(live, 0.0)))
        page.start()
        page.join(timeout=10)
        answers.append(None)  # what a page that waits comes after
        return predict(known, plan, running=running)

    site.run_times.load()
    site.submit()
    monkeypatch.setattr(RunTimePredictor, "predict", predicts)
    site.run_times.refresh()
    assert answers[0] is not None
    assert answers[0].seconds == 300


def test_a_cancelled_job_is_a_lower_bound(site: Site) -> None:
    for _ in range(2):
        site.end(site.submit(), 600)
    site.end(site.submit(), 5, CauseCode.CANCELLED)
    site.run_times.load()
    known = JobService(site.context).run_time(STUDENT1, job())
    assert known is not None
    assert known.seconds == 600


def test_a_job_keeps_its_expected_run_time_limit_and_charge(site: Site) -> None:
    site.end(site.submit(), 300)
    site.run_times.load()
    made = site.context.store.request(site.submit())
    assert (made.expected, made.seconds) == (300, 3600)


def test_a_damaged_model_is_ignored_and_said_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.run_times.model_file.write_text('{"format": 1, "typical"')
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            site.run_times.load()
    assert len(caplog.records) == 1
    assert "ignored" in caplog.text
    assert JobService(site.context).run_time(STUDENT1, job()) is not None


def test_a_model_is_fitted_in_a_process_of_its_own(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn", reason="the extra insight is not installed")
    runs = {str(number): run for number, run in enumerate(steps_history(FEWEST))}
    monkeypatch.setattr(JobRunTimes, "history", lambda _: iter(runs.items()))
    site.run_times.fit()
    content = site.run_times.model_file.read_bytes()
    assert RunTimeModel.from_json(content).columns.parameters == ("steps",)
    assert JobService(site.context).run_time(STUDENT1, job()) is not None


def test_a_run_as_json_is_the_same_run() -> None:
    for run in steps_history(3):
        assert from_json(as_json(run)) == run


NOTEBOOK = {"command": [], "notebook": {"name": "train.ipynb", "content": notebook("a", "b")}}
CELLS = ("aa", "bb", "aa")


def test_remaining_time_is_revised_after_each_cell(site: Site) -> None:
    store = site.context.store
    site.run_times.load()
    site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS))
    site.run_times.refresh()
    # An edited notebook: its first cell is new.
    edited = NOTEBOOK | {"notebook": {"name": "new.ipynb", "content": notebook("c", "b")}}
    made = site.submit(**edited)
    lease = site.run_cells(made, 90, hashes=("cc", "bb", "aa"))
    site.clock.now += 100
    (times,) = store.cell_times()
    assert sorted(times.cells.values()) == [30, 60, 300]
    found = site.remaining(made)
    assert found is not None
    assert (found.seconds, found.by_cells, found.runs) == (230, True, 1)
    assert found.sentence.startswith("About 4 min left (")
    assert found.sentence.endswith("by the same cells of 1 earlier job.")
    site.report(lease, 2001, "cell_finished", number=2, seconds=250)
    after = site.remaining(made)
    assert after is not None
    assert after.seconds == 30
    assert after.high < found.high


def test_the_same_cells_of_another_user_say_nothing(site: Site) -> None:
    site.run_times.load()
    site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS))
    site.run_times.refresh()
    made = JobService(site.context).submit(STUDENT2, job(**NOTEBOOK)).id
    site.run_cells(made, 30, hashes=CELLS)
    record = site.context.store.request(made)
    found = site.run_times.remaining(record, site.clock.now)
    assert found is not None
    assert not found.by_cells


def test_cell_times_that_a_crash_has_not_stored_are_stored_at_the_next_start(site: Site) -> None:
    site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS))
    for _ in range(2):
        site.run_times.load()
        assert len(site.context.store.cell_times()) == 1


def test_without_cells_the_run_time_tells_and_without_history_the_limit(site: Site) -> None:
    site.run_times.load()
    first = site.submit(**NOTEBOOK, seconds=900)
    lease = site.run_cells(first, hashes=CELLS)
    site.clock.now += 300
    unknown = site.remaining(first)
    assert unknown is not None
    assert (unknown.seconds, unknown.runs) == (600, 0)
    assert unknown.sentence == (
        "Remaining time unknown: no earlier job is like this one. It may run for 10 min."
    )
    site.succeed(lease)
    site.run_times.refresh()
    again = site.submit(**NOTEBOOK, seconds=900)
    site.run_cells(again, hashes=CELLS)
    known = site.remaining(again)
    assert known is not None
    assert (known.seconds, known.by_cells) == (pytest.approx(300, rel=0.01), False)
    assert site.remaining(first) is None


def test_a_job_of_new_code_is_known_by_its_progress(site: Site) -> None:
    site.run_times.load()
    command = site.submit()
    lease = site.run_cells(command, hashes=())
    site.clock.now += 300
    site.report(lease, 10, "progress", done=5, of=100, text="step")
    imported = site.remaining(command)
    assert imported is not None
    assert not imported.by_steps, "the time before the first report is not that of steps"
    site.clock.now += 300
    site.report(lease, 11, "progress", done=30, of=100, text="step")
    found = site.remaining(command)
    assert found is not None
    assert (found.seconds, found.by_steps) == (pytest.approx(840), True)
    assert found.sentence.startswith("About 14 min left (")
    assert found.sentence.endswith("by the progress that it reports: no earlier job has its code.")
    site.lose(lease)
    again = site.run_cells(command, hashes=())
    site.report(again, 12, "progress", done=26, of=100, text="step")
    site.clock.now += 10
    site.report(again, 13, "progress", done=36, of=100, text="step")
    later = site.remaining(command)
    # It may have gone on with a checkpoint.
    assert later is not None
    assert not later.by_steps


def test_the_remaining_time_narrows_with_the_progress_towards_the_end(site: Site) -> None:
    site.run_times.load()
    command = site.submit()
    lease = site.run_cells(command, hashes=())
    site.clock.now += 120
    end = site.clock.now + 1000
    found = []
    for done in range(0, 100, 10):
        site.report(lease, 10 + done, "progress", done=done, of=100, text="")
        if (each := site.remaining(command)) is not None and each.by_steps:
            assert each.low <= end - site.clock.now <= each.high
            found.append(each)
        site.clock.now += 100
    assert len(found) == 9
    widths = [each.high - each.low for each in found]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 10


def test_epochs_whose_steps_begin_again_say_nothing_of_the_whole_job(site: Site) -> None:
    site.run_times.load()
    command = site.submit()
    lease = site.run_cells(command, hashes=())
    seq = 10
    for _ in range(2):
        for step in range(0, 100, 10):
            site.report(lease, seq, "progress", done=step, of=100, text="")
            seq, site.clock.now = seq + 1, site.clock.now + 10
    found = site.remaining(command)
    assert found is not None
    assert not found.by_steps
    assert found.sentence.startswith("Remaining time unknown")


@pytest.mark.parametrize(("cells", "known"), [(("aa", "bb"), True), (("aa", "bb", "cc"), False)])
def test_progress_in_the_last_cell_alone_is_that_of_the_job(
    site: Site, cells: tuple[str, ...], known: bool
) -> None:
    """Of jobs of the same user with other code the progress says more."""
    site.run_times.load()
    site.end(site.submit(), 3000)
    site.run_times.refresh()
    made = site.submit(**NOTEBOOK)
    lease = site.run_cells(made, 30, hashes=cells)
    site.report(lease, 2000, "progress", number=2, done=0, of=100, text="")
    site.clock.now += 100
    site.report(lease, 2001, "progress", number=2, done=50, of=100, text="")
    found = site.remaining(made)
    assert found is not None
    assert found.by_steps is known
    assert (found.seconds == pytest.approx(100)) is known


def test_the_queue_expects_what_the_cells_predict(site: Site) -> None:
    site.run_times.load()
    for _ in range(12):
        site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS))
        site.run_times.refresh()
    running = site.submit(**NOTEBOOK)
    site.run_cells(running, 130, hashes=CELLS)
    site.run_times.refresh()
    snapshot = SnapshotReader.of(site.context).snapshot(site.context.clock())
    (held,) = snapshot.allocations
    assert held.expected == 130 + 360
    assert held.until - held.since == 3600


def test_a_job_whose_cells_have_all_run_is_not_expected_to_run_twice_as_long(site: Site) -> None:
    site.run_times.load()
    running = site.submit(**NOTEBOOK)
    site.run_cells(running, 30, 300, 60, hashes=CELLS)
    site.run_times.refresh()
    (held,) = SnapshotReader.of(site.context).snapshot(site.context.clock()).allocations
    assert held.expected == 390 + 2 * EVERY_SECONDS


def test_the_cells_of_a_job_are_compared_with_those_before(site: Site) -> None:
    site.run_times.load()
    for _ in range(2):
        site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS))
    site.run_times.refresh()
    running = site.submit(**NOTEBOOK)
    site.run_cells(running, 60, 600, hashes=CELLS)
    record = site.context.store.request(running)
    assert site.run_times.cell_pace(record, site.context.clock()) == (660.0, 330.0)


def test_cells_of_an_earlier_attempt_are_not_the_pace_of_the_next(site: Site) -> None:
    """They ran on the device of that attempt."""
    site.run_times.load()
    for _ in range(2):
        site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS))
    site.run_times.refresh()
    made = site.submit(**NOTEBOOK)
    site.lose(site.run_cells(made, 60, 600, hashes=CELLS))
    site.run_cells(made, 60, hashes=CELLS, taken_over=2)
    record = site.context.store.request(made)
    assert site.run_times.cell_pace(record, site.context.clock()) == (60.0, 60.0)


def test_after_a_failed_refresh_no_run_time_stays_revised(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.run_times.load()
    site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=CELLS)
    site.run_times.refresh()
    assert site.run_times.revised_seconds()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(type(site.context.store), "put_cell_times", fail)
    with pytest.raises(OSError, match="disk full"):
        site.run_times.refresh()
    assert not site.run_times.revised_seconds()


def test_a_run_that_goes_on_with_saved_work_is_not_told_by_whole_run_times(site: Site) -> None:
    site.end(site.submit(), 300)
    site.run_times.load()
    made = site.submit()
    site.run_cells(made, hashes=())
    first = site.context.store.request(made)
    found = site.run_times.remaining(first, site.clock.now)
    assert found is not None
    assert found.basis is Basis.OWN_PARAMETERS
    assert first.lease is not None
    second = replace(first, lease=replace(first.lease, epoch=2))
    found = site.run_times.remaining(second, site.clock.now)
    assert found is not None
    assert (found.basis, found.seconds) == (None, 3600)


@pytest.mark.parametrize(("taken_over", "ran"), [(0, 0), (2, 330)])
def test_a_second_attempt_is_told_by_run_times_and_by_what_the_first_one_has_done(
    site: Site, taken_over: int, ran: float
) -> None:
    """Of the earlier job no cells are known: it ran before the notebook was edited."""
    site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=["x", "y", "z"]))
    site.run_times.load()
    made = site.submit(**NOTEBOOK)
    site.lose(site.run_cells(made, 30, 300, hashes=CELLS))
    site.run_cells(made, hashes=CELLS, taken_over=taken_over)
    found = site.remaining(made)
    whole = site.run_times.forecast(site.context.store.request(made), site.clock.now)
    assert found is not None
    assert whole is not None
    assert whole.seconds == 390
    assert found.seconds == pytest.approx(remaining_of_run(whole, ran).seconds)
    assert not found.by_cells


def test_without_the_times_of_the_cells_it_goes_on_after_its_limit_is_what_is_known(
    site: Site,
) -> None:
    site.succeed(site.run_cells(site.submit(**NOTEBOOK), 30, 300, 60, hashes=["x", "y", "z"]))
    site.run_times.load()
    made = site.submit(**NOTEBOOK)
    site.lose(site.run_cells(made, hashes=CELLS))
    site.run_cells(made, hashes=CELLS, taken_over=2)
    found = site.remaining(made)
    assert found is not None
    assert (found.seconds, found.basis) == (3600, None)


def test_a_job_that_the_controller_ends_is_learned_from_before_the_next_look(site: Site) -> None:
    site.run_times.load()
    made = site.submit(**NOTEBOOK)
    lease = site.run_cells(made, 30, 300, 60, hashes=CELLS)
    store, now = site.context.store, site.clock.now
    cause = Cause(code=CauseCode.SUCCEEDED, message="All cells ran.")
    store.apply(made, lifecycle.stop, State.SUCCEEDED, cause, now=now)
    finish_attempt(site.context, lease, store.request(made), now=now, until=now)
    site.run_times.learn_ended()
    known = JobService(site.context).dry_run(STUDENT1, job(**NOTEBOOK)).run_time
    assert known is not None
    assert (known.seconds, known.runs) == (390, 1)
    assert len(store.cell_times()) == 1
    site.run_times.refresh()
    again = JobService(site.context).dry_run(STUDENT1, job(**NOTEBOOK)).run_time
    assert again is not None
    assert again.runs == 1


LIMITS = {30.0: 60, 100.0: 180, 600.0: 900, 1800.0: 2400, 7200.0: 9000, 40_000.0: 50_400}


@pytest.mark.parametrize("high", LIMITS)
def test_a_suggested_limit_has_a_margin_and_a_round_number(high: float) -> None:
    known = RunTimeForecast(seconds=10, low=5, high=high, basis=Basis.OWNER, runs=3)
    assert suggested_limit(known) == LIMITS[high]


def test_a_forecast_is_a_sentence() -> None:
    known = RunTimeForecast(seconds=420, low=380, high=510, basis=Basis.PROGRAM, runs=1)
    assert run_time_sentence(known, 3600) == (
        "About 7 min; 9 of 10 such jobs take 6 min 20 s to 8 min 30 s, by 1 earlier job with the "
        "same code."
    )


SHARED = notebook("data = sum(range(9))", "loss = data * lr", parameters="lr = 0.1")
SWEEP = {"space": {"grid": {"lr": [0.1, 0.2, 0.3, 0.4]}}}


def swept(site: Site, **more: object) -> JobIn:
    """Return a sweep of a notebook that has run alone, for 30, 300 and 60 seconds."""
    site.run_times.load()
    body = {"command": [], "notebook": {"name": "train.ipynb", "content": SHARED}}
    hashes = tuple(code_cell_hashes(json.loads(SHARED)["cells"]))
    site.succeed(site.run_cells(site.submit(**body), 30, 300, 60, hashes=hashes))
    site.run_times.refresh()
    return job(**body, sweep=SWEEP | more)


def test_a_dry_run_of_a_sweep_counts_the_stages_that_trials_share_once(site: Site) -> None:
    body = swept(site)
    found = JobService(site.context).dry_run(STUDENT1, body)
    assert found.run_time is not None
    assert found.run_time.seconds == pytest.approx(330 + 4 * 60)
    assert found.run_time.high >= 4 * 390, "the kernel may turn out not to be forkable"
    assert found.run_time.critical_path == "cells 1 to 2 → cell 3 (4 times)"
    assert "Cells that trials share run once, which saves 17 min of work." in (
        found.run_time.sentence
    )
    assert found.cost is not None
    assert found.cost.device_seconds == pytest.approx(570)
    alone = JobService(site.context).dry_run(STUDENT1, swept(site, share=False)).run_time
    assert alone is not None
    assert (alone.seconds, alone.critical_path) == (pytest.approx(4 * 390), "")


def test_the_queue_and_the_page_expect_of_a_sweep_what_its_dry_run_did(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, swept(site)).id
    assert site.context.store.request(made).expected == pytest.approx(570)
    shown = TrialService(site.context).sharing(STUDENT1, made)
    assert shown.expected[1:] == [
        "Critical path: cells 1 to 2 → cell 3 (4 times).",
        "On the present queue it is expected to end in about 9 min 30 s (2 min 30 s to 1 h).",
    ]
    found = site.run_times.forecast(site.context.store.request(made), site.context.clock())
    assert found is not None
    assert found.seconds == pytest.approx(570)


@pytest.mark.parametrize("command", ["false", "/no/such/program"])
def test_a_sweep_whose_notebook_cannot_be_analysed_is_queued(site: Site, command: str) -> None:
    broken = SweepOutlines(AnalysingProcess(command=(command,)))
    body = swept(site)
    found = JobService(site.context, outlines=broken).dry_run(STUDENT1, body).run_time
    assert found is not None
    assert (found.seconds, found.critical_path) == (pytest.approx(4 * 390), "")
    assert found.sentence.endswith(
        "Each trial counts as a whole run: the notebook could not be analysed."
    )


def test_a_submission_does_not_wait_while_other_notebooks_are_analysed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.hub.runtime.limited_process.WAIT_SECONDS", math.inf)
    busy = SweepOutlines()
    for _ in range(AT_ONCE):
        busy.process.slots.acquire()
    jobs = JobService(site.context, outlines=busy)
    made = jobs.submit(STUDENT1, swept(site)).id
    sentence = (
        "Each trial counts as a whole run: other notebooks were being analysed when the sweep was "
        "submitted."
    )
    assert site.context.store.request(made).expected == pytest.approx(4 * 390)
    shown = TrialService(site.context).sharing(STUDENT1, made)
    assert shown.expected[0].endswith(sentence)
    busy.process.slots.release()
    found = jobs.dry_run(STUDENT1, swept(site)).run_time
    assert found is not None
    assert found.seconds == pytest.approx(570), "the next submission is analysed"
