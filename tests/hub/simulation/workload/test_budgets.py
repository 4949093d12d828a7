"""Budgets in the simulator: waits, stops and refills."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.records.calendar import Term
from carrel.hub.scheduling.model.snapshot import Budget, Group, Period
from carrel.hub.simulation.policies.carrel_policy import CARREL
from carrel.hub.simulation.policies.policy import BASELINES, SimulatedSite
from carrel.hub.simulation.replay.event_loop import ReplayOutcome
from carrel.hub.simulation.workload.calendar import Calendar
from carrel.hub.simulation.workload.jobs import TraceJob
from carrel.hub.simulation.workload.quota_file import unlimited_group

from ..kit import job, played, site, spans

DAY = 86400.0
MONDAY = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
WEEK = 7 * DAY
WINTER = Term(name="winter", first=date(2026, 10, 12), last=date(2026, 11, 8))
SUMMER = Term(name="summer", first=date(2026, 11, 16), last=date(2027, 2, 1))


def group(name: str, seconds: float, period: Period = Period.WEEK, **more: object) -> Group:
    budget = Budget(device_seconds=seconds, period=period)
    return replace(unlimited_group(name, 4), budget=budget, **more)  # type: ignore[arg-type]


def lab_job(name: str, at: float, seconds: float, devices: int = 1, **more: object) -> TraceJob:
    """``at``: seconds after a Monday."""
    given: dict[str, object] = {"tenant": "lab", "limit": seconds, **more}
    return job(name, MONDAY + at, seconds, devices, **given)


def place(*groups: Group, terms: tuple[Term, ...] = (), restart_cost: float = 0.0) -> SimulatedSite:
    made = site(1, 4, restart_cost=restart_cost)
    return replace(made, groups=groups, calendar=Calendar(terms=terms))


def ran(outcome: ReplayOutcome) -> dict[str, list[tuple[float, float]]]:
    """Return when each job ran, in seconds after that Monday."""
    return {
        name: [(began - MONDAY, ended - MONDAY) for began, ended in found]
        for name, found in spans(outcome).items()
    }


def test_a_job_that_waits_for_a_weekly_budget_starts_on_monday() -> None:
    jobs = (lab_job("a", 10, 100), lab_job("b", 200, 100), lab_job("c", 2 * WEEK, 100))
    found = played(CARREL, jobs, place(group("lab", 100)))
    assert ran(found) == {
        "a": [(10, 110)],
        "b": [(WEEK, WEEK + 100)],
        "c": [(2 * WEEK, 2 * WEEK + 100)],
    }


def test_running_jobs_are_stopped_at_the_end_of_the_budget_and_continue_later() -> None:
    jobs = (lab_job("a", 0, 100, 2), lab_job("b", 1, 50, 2))
    found = played(CARREL, jobs, place(group("lab", 201), restart_cost=5))
    # On the last of it b may start, and 99.5 s of both are too much together.
    assert ran(found) == {
        "a": [(0, 50.75), (WEEK, WEEK + 54.25)],
        "b": [(1, 50.75), (WEEK, WEEK + 5.25)],
    }
    assert [run.preemptions for run in found.runs] == [1, 1]
    assert sum(run.lost for run in found.runs) == 20


def test_usage_counts_in_the_period_in_which_it_occurred() -> None:
    jobs = (lab_job("a", WEEK - 60, 100), lab_job("b", WEEK + 50, 61))
    found = played(CARREL, jobs, place(group("lab", 100)))
    # 40 s of a are in the second week, and b has one second less than it needs.
    assert ran(found)["a"] == [(WEEK - 60, WEEK + 40)]
    assert ran(found)["b"] == [(WEEK + 50, WEEK + 110), (2 * WEEK, 2 * WEEK + 1)]


def test_the_unused_part_of_a_time_limit_is_returned_to_the_budget() -> None:
    jobs = (lab_job("a", 0, 10, limit=100.0), lab_job("b", 1, 90), lab_job("c", 300, 1))
    found = ran(played(CARREL, jobs, place(group("lab", 100))))
    assert found["b"] == [(10, 100)]
    assert found["c"] == [(WEEK, WEEK + 1)]


def test_a_budget_counts_its_subgroups_only() -> None:
    below = {name: replace(unlimited_group(name, 4), parent="site") for name in ("lab", "cs101")}
    groups = (group("site", 100), *below.values(), unlimited_group("other", 4))
    jobs = (
        lab_job("a", 0, 100),
        lab_job("b", 200, 10, tenant="cs101"),
        lab_job("c", 200, 10, tenant="other"),
    )
    found = ran(played(CARREL, jobs, place(*groups)))
    assert found == {"a": [(0, 100)], "b": [(WEEK, WEEK + 10)], "c": [(200, 210)]}


def test_between_two_terms_no_job_starts_and_running_jobs_continue() -> None:
    jobs = (lab_job("a", WEEK - 10, 100), lab_job("b", WEEK + 5, 10))
    terms = group("lab", 1000, Period.TERM)
    found = played(CARREL, jobs, place(terms, terms=(WINTER, SUMMER)))
    assert ran(found) == {"a": [(WEEK - 10, WEEK + 90)], "b": [(2 * WEEK, 2 * WEEK + 10)]}


def test_a_job_that_waits_for_an_unknown_term_never_starts() -> None:
    jobs = (lab_job("a", 0, 100), lab_job("b", 50, 80), lab_job("c", 300, 10))
    found = played(CARREL, jobs, place(group("lab", 150, Period.TERM), terms=(WINTER,)))
    assert ran(found) == {"a": [(0, 100)]}
    assert [run.job.id for run in found.held_back] == ["b", "c"]
    with pytest.raises(InvalidInput, match="no term is known in which they could run"):
        played(CARREL, jobs, place(group("lab", 150, Period.TERM)))


def test_a_job_that_could_never_start_is_an_error() -> None:
    narrow = group("lab", 150, Period.TERM, max_devices=0)
    with pytest.raises(InvalidInput, match="lab may hold at most 0 devices"):
        played(CARREL, [lab_job("a", 0, 100)], place(narrow, terms=(WINTER,)))
    elsewhere = group("lab", 150, models=frozenset({"Other"}))
    with pytest.raises(InvalidInput, match="No node has more than 0 devices that lab may use"):
        played(CARREL, [lab_job("a", 0, 100)], place(elsewhere))


def test_a_job_that_no_budget_lets_end_is_named() -> None:
    jobs = (lab_job("a", 0, 100), lab_job("b", 0, 100))
    with pytest.raises(InvalidInput, match="the budgets of its groups end before its work does"):
        played(CARREL, jobs, place(group("lab", 101), restart_cost=51))


def test_policies_without_quotas_ignore_budgets() -> None:
    jobs = (lab_job("a", 0, 100), lab_job("b", 200, 100))
    found = played(BASELINES["fifo"], jobs, place(group("lab", 100)))
    assert ran(found) == {"a": [(0, 100)], "b": [(200, 300)]}


def test_a_budget_that_just_suffices_stops_no_job() -> None:
    jobs = [lab_job(str(number), number * 7.3, 33, 1) for number in range(30)]
    found = played(CARREL, jobs, place(group("lab", 30 * 33)))
    assert sum(run.preemptions for run in found.runs) == 0
    assert max(run.ended_at or 0.0 for run in found.runs) < MONDAY + WEEK


def test_without_queued_jobs_nothing_is_stranded() -> None:
    jobs = (lab_job("a", 0, 100, 4),)
    assert played(CARREL, jobs, place(group("lab", 400))).free == 0
