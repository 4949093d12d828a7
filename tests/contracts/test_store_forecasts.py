"""Contract of the store: forecasts of run times and waits, and their outcomes."""

from __future__ import annotations

from dataclasses import replace

from carrel.hub.interfaces.run_times import (
    Basis,
    CellTimes,
    ForecastOutcome,
    RunTimeForecast,
)
from carrel.hub.interfaces.store import Store
from carrel.hub.records.usage import DAY
from carrel.hub.scheduling.model.plan import Estimate, Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from .store_kit import CANCELLED, DEAD, DONE, furnish, job, running

FORECAST = RunTimeForecast(seconds=50.0, low=40.0, high=90.0, basis=Basis.OWNER, runs=3)


def _ended(store: Store, lease_id: str, state: State, now: float) -> None:
    cause = DONE if state is State.SUCCEEDED else CANCELLED
    store.apply(lease_id.rpartition(".")[0], lifecycle.stop, state, cause, now=now)
    store.apply_to_lease(lease_id, lifecycle.finish, now=now, charge_until=now)


def _run(at: float, seconds: float | None) -> ForecastOutcome:
    return ForecastOutcome(at=at, expected=50.0, low=40.0, high=90.0, seconds=seconds)


def test_a_run_time_is_known_of_the_attempt_with_which_a_job_succeeded(store: Store) -> None:
    furnish(store)
    done = running(store, job("done"), "D0")
    store.put_run_time_forecasts({done.id: FORECAST}, now=100.0)
    later = RunTimeForecast(seconds=1.0, low=1.0, high=1.0, basis=Basis.OWNER)
    cut = running(store, job("cut"), "D1")
    # The first forecast is kept.
    store.put_run_time_forecasts({done.id: later, cut.id: FORECAST}, now=101.0)
    assert store.run_time_outcomes(since=0.0, limit=9) == ()
    _ended(store, done.id, State.SUCCEEDED, 160.0)
    _ended(store, cut.id, State.CANCELLED, 170.0)
    both = (_run(170.0, None), _run(160.0, 60.0))
    assert store.run_time_outcomes(since=160.0, limit=9) == both
    assert store.run_time_outcomes(since=161.0, limit=9) == both[:1]
    assert store.run_time_outcomes(since=0.0, limit=1) == both[:1]


def test_a_lost_attempt_is_stopped_and_the_next_one_complete(store: Store) -> None:
    furnish(store)
    lost = running(store, job("a"), "D0")
    store.put_run_time_forecasts({lost.id: FORECAST}, now=100.0)
    store.apply_to_lease(lost.id, lifecycle.lose, DEAD, now=150.0, charge_until=150.0, requeue=True)
    start = Start(request_id="j-a", devices=("D0",))
    (again,) = store.grant([start], now=200.0, lease_seconds=30)
    store.launch(again.id, now=200.0)
    store.put_run_time_forecasts({again.id: FORECAST}, now=200.0)
    _ended(store, again.id, State.SUCCEEDED, 260.0)
    assert store.run_time_outcomes(since=0.0, limit=9) == (_run(260.0, 60.0), _run(150.0, None))


def test_a_wait_ends_with_the_next_grant_or_without_one(store: Store) -> None:
    furnish(store)
    for name in ("started", "cancelled", "waiting"):
        store.submit(job(name), 90.0)
    names = ("j-started", "j-cancelled", "j-waiting")
    store.put_wait_forecasts({name: Estimate(at=130.0, latest=190.0) for name in names}, now=100.0)
    # The first forecast is kept.
    store.put_wait_forecasts({"j-started": Estimate(at=500.0, latest=500.0)}, now=110.0)
    store.grant([Start(request_id="j-started", devices=("D0",))], now=140.0, lease_seconds=30)
    store.apply("j-cancelled", lifecycle.stop, State.CANCELLED, CANCELLED, now=150.0)
    assert store.wait_outcomes(since=0.0, limit=9) == (
        ForecastOutcome(at=150.0, expected=30.0, low=30.0, high=90.0, seconds=None),
        ForecastOutcome(at=140.0, expected=30.0, low=30.0, high=90.0, seconds=40.0),
    )
    assert store.wait_outcomes(since=151.0, limit=9) == ()


def test_forecasts_are_kept_for_ten_weeks(store: Store) -> None:
    furnish(store)
    old, new = running(store, job("old"), "D0"), running(store, job("new"), "D1")
    store.put_run_time_forecasts({old.id: FORECAST}, now=100.0)
    store.put_wait_forecasts({"j-old": Estimate(at=100.0, latest=100.0)}, now=100.0)
    _ended(store, old.id, State.SUCCEEDED, 160.0)
    assert len(store.run_time_outcomes(since=0.0, limit=9)) == 1
    store.put_run_time_forecasts({new.id: FORECAST}, now=101.0 + 70 * DAY)
    store.put_wait_forecasts({"j-new": Estimate(at=0.0, latest=0.0)}, now=101.0 + 70 * DAY)
    assert store.run_time_outcomes(since=0.0, limit=9) == ()
    assert store.wait_outcomes(since=0.0, limit=9) == ()


def test_cell_times_are_stored_once_and_read_in_the_order_of_their_ends(store: Store) -> None:
    furnish(store)
    first, second = running(store, job("first"), "D0"), running(store, job("second"), "D1")
    times = CellTimes(
        lease_id=first.id,
        ended_at=160.0,
        conditions="c0ffee",
        cells={"b": 2.5, "a": 1.0},
        complete=True,
    )
    sooner = replace(times, lease_id=second.id, ended_at=150.0, complete=False)
    gone = replace(times, lease_id="j-gone.1")
    store.put_cell_times([times, gone])
    store.put_cell_times([replace(times, complete=False), sooner])
    assert store.cell_times() == (sooner, times)
    assert list(store.cell_times()[1].cells) == ["b", "a"]
    store.put_cell_times([])
