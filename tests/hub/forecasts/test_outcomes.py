"""Forecasts of the loop, and the weekly sums of their outcomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from carrel.hub.controller.loop import Loop
from carrel.hub.forecasts.outcomes import WEEKS, forecast_history, score
from carrel.hub.forecasts.recorder import ForecastRecorder
from carrel.hub.interfaces.run_times import (
    Basis,
    CellTimes,
    ForecastOutcome,
    NoRunTimes,
    RunTimeForecast,
)
from carrel.hub.records.requests import NewRequest, RequestRecord
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Estimate, Plan, Reason, Wait
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn
from carrel.hub.schemas.usage import ForecastScoreOut
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...contracts.store_kit import CANCELLED
from ...stores import new_store
from ..doubles import STUDENT1, Clock, FakeHub, build, device


def outcome(seconds: float | None, *, at: float = 0.0, high: float = 20.0) -> ForecastOutcome:
    return ForecastOutcome(at=at, expected=10.0, low=5.0, high=high, seconds=seconds)


def test_a_score_has_the_share_inside_and_the_median_error() -> None:
    found = [outcome(10.0), outcome(20.0), outcome(40.0), outcome(None), outcome(-3.0)]
    assert score(found, least=1.0) == ForecastScoreOut(
        outcomes=3, inside=2 / 3, median_error=0.5, stopped=1
    )


def test_a_wait_that_ends_before_its_interval_is_as_forecast() -> None:
    found = [outcome(1.0), outcome(10.0), outcome(40.0)]
    assert score(found, least=1.0, or_less=True).inside == 2 / 3
    assert score(found, least=1.0).inside == 1 / 3


def test_errors_of_short_outcomes_are_relative_to_the_least() -> None:
    assert score([outcome(0.0)], least=60.0).median_error == 10 / 60


def test_without_outcomes_nothing_is_said() -> None:
    nothing = ForecastScoreOut(outcomes=0, inside=None, median_error=None, stopped=0)
    assert score([], least=1.0) == nothing
    found = forecast_history(new_store(), 1e9)
    assert [each.run_times for each in found.weeks] == [nothing] * WEEKS
    assert [each.waits for each in found.weeks] == [nothing] * WEEKS


class _Outcomes:
    """Waits that ended in the last second before a Monday, and in its first."""

    monday = datetime(2026, 11, 23, tzinfo=UTC).timestamp()

    def run_time_outcomes(self, *, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
        return ()

    def wait_outcomes(self, *, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
        first = self.monday - (WEEKS - 1) * 7 * 86_400
        assert since == first
        return tuple(outcome(10.0, at=at) for at in (self.monday, self.monday - 1, first))

    def put_cell_times(self, found: object) -> None:
        raise AssertionError(found)

    def cell_times(self) -> tuple[CellTimes, ...]:
        return ()

    def put_run_time_forecasts(self, found: object, *, now: float) -> None:
        raise AssertionError

    def put_wait_forecasts(self, found: object, *, now: float) -> None:
        raise AssertionError


def test_weeks_begin_on_monday_and_the_newest_is_first() -> None:
    found = forecast_history(_Outcomes(), _Outcomes.monday + 3 * 86_400)
    assert [each.week for each in found.weeks[:2]] == ["2026-11-23", "2026-11-16"]
    assert [each.waits.outcomes for each in found.weeks] == [1, 1, 0, 0, 0, 0, 0, 1]


class _Minute(NoRunTimes):
    """Predicts a minute for each job."""

    def forecast(self, request: NewRequest | RequestRecord, now: float) -> RunTimeForecast:
        return RunTimeForecast(seconds=60.0, low=50.0, high=70.0, basis=Basis.OWNER, runs=1)


def test_the_loop_stores_what_it_expects_of_starts_and_waits(tmp_path: Path) -> None:
    clock = Clock()
    backend = FakeBackend(devices=(device(0),), clock=clock)
    made = build(new_store(), backend, FakeHub(), clock, tmp_path, devices=1)
    context = replace(made, run_times=_Minute())
    loop = Loop(context, node="local")
    try:
        loop.inventory()
        body = JobIn(group="cs101", devices=1, seconds=600, command=["sleep", "9"])
        first, second = (JobService(context).submit(STUDENT1, body).id for _ in range(2))
        loop.cycle()
        assert loop.wait_for_actions(20)
        now = clock()
        for name in (first, second):
            request = context.store.request(name)
            context.store.apply(name, lifecycle.stop, State.CANCELLED, CANCELLED, now=now + 55)
            if request.lease is not None:
                context.store.apply_to_lease(
                    request.lease.id, lifecycle.finish, now=now + 55, charge_until=now + 55
                )
        found = forecast_history(context.store, now + 60).weeks[0]
        assert (found.run_times.stopped, found.waits.stopped) == (1, 1)
    finally:
        loop.close()


def test_an_expected_start_is_stored_once_although_plans_repeat_it(tmp_path: Path) -> None:
    clock = Clock()
    context = build(new_store(), FakeBackend(clock=clock), FakeHub(), clock, tmp_path)
    recorder = ForecastRecorder(context)
    wait = Wait("j-1", 1, Reason.NO_FREE_DEVICE, estimate=Estimate(at=10.0, latest=20.0))
    recorder.note(Plan(waits=(wait._replace(estimate=None),)), (), 1.0)
    assert not recorder.pending
    body = JobIn(group="cs101", devices=1, seconds=600, command=["sleep", "9"])
    name = JobService(context).submit(STUDENT1, body).id
    plan = Plan(waits=(wait._replace(request_id=name),))
    recorder.note(plan, (), 1.0)
    assert recorder.pending
    recorder.store()
    recorder.note(plan, (), 2.0)
    assert not recorder.pending
