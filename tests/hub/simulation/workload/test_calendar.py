"""Reservations of a site in a replay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.records.calendar import Reservation
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.simulation.policies.carrel_policy import CARREL
from carrel.hub.simulation.policies.policy import BASELINES, SimulatedSite
from carrel.hub.simulation.replay.event_loop import ReplayOutcome
from carrel.hub.simulation.workload.calendar import Calendar
from carrel.hub.simulation.workload.jobs import TraceJob
from carrel.hub.simulation.workload.quota_file import unlimited_group

from ..kit import job, played, site, spans

HOUR = 3600.0
DAY = 24 * HOUR
WEEK = 7 * DAY
MONDAY = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
MONDAYS_AT_TEN = Reservation(
    id="r-1",
    group="course",
    devices=2,
    weekdays=(0,),
    begins=time(10),
    ends=time(12),
    zone="UTC",
    first=date(2026, 11, 2),
    last=date(2027, 2, 15),
)
GROUPS = (unlimited_group("course", 2), unlimited_group("lab", 2))


def asked(name: str, tenant: str, at: float, seconds: float, **more: object) -> TraceJob:
    """``at``: seconds after a Monday."""
    given: dict[str, object] = {"user": tenant, "limit": seconds, **more}
    return job(name, MONDAY + at, seconds, 1, tenant=tenant, **given)


def place(*reservations: Reservation, groups: tuple[Group, ...] = GROUPS) -> SimulatedSite:
    return replace(site(1, 2), groups=groups, calendar=Calendar(reservations=reservations))


def ran(outcome: ReplayOutcome) -> dict[str, list[tuple[float, float]]]:
    """Return when each job ran, in hours after that Monday."""
    return {
        name: [((began - MONDAY) / HOUR, (ended - MONDAY) / HOUR) for began, ended in found]
        for name, found in spans(outcome).items()
    }


def test_a_job_that_could_overlap_a_reservation_of_others_waits() -> None:
    jobs = (
        asked("short", "lab", 8 * HOUR, HOUR),
        asked("long", "lab", 8 * HOUR, 3 * HOUR),
        asked("own", "course", 9 * HOUR, 2 * HOUR),
        asked("late", "course", 11 * HOUR, HOUR / 2),
    )
    found = played(CARREL, jobs, place(MONDAYS_AT_TEN))
    assert ran(found) == {
        "short": [(8, 9)],
        "long": [(12, 15)],
        "own": [(9, 11)],
        "late": [(11, 11.5)],
    }
    assert ran(played(CARREL, jobs, place()))["long"] == [(8, 11)]
    assert ran(played(BASELINES["fifo"], jobs, place(MONDAYS_AT_TEN)))["long"] == [(8, 11)]


def test_every_week_of_a_long_replay_has_its_reservation() -> None:
    weeks = range(20)
    jobs = [asked(str(n), "lab", n * WEEK + 9 * HOUR, 2 * HOUR) for n in weeks]
    found = ran(played(CARREL, jobs, place(MONDAYS_AT_TEN)))
    starts = [(found[str(n)][0][0] * HOUR - n * WEEK) / HOUR for n in weeks]
    # The last Monday is the sixteenth.
    assert starts == [12.0] * 16 + [9.0] * 4


def test_running_jobs_stay_counted_when_reservations_are_recomputed() -> None:
    jobs = (
        asked("a", "lab", 12 * HOUR, 5 * DAY, user="ada"),
        asked("b", "lab", 30 * DAY, 3 * DAY, user="bob"),
        *(asked(f"c{n}", "lab", 31.5 * DAY + n, DAY, user="eve") for n in range(2)),
    )
    tuesdays = replace(MONDAYS_AT_TEN, weekdays=(6,), devices=0)
    found = ran(played(CARREL, jobs, place(tuesdays)))
    assert found["c0"] == [(31.5 * 24, 32.5 * 24)]
    assert found["c1"] == [(32.5 * 24, 33.5 * 24)]


def test_a_job_longer_than_every_gap_between_reservations_never_starts() -> None:
    always = replace(MONDAYS_AT_TEN, weekdays=(), last=date(2100, 1, 1))
    daily = [replace(always, id=f"r{n}", weekdays=(n,)) for n in range(7)]
    jobs = (asked("a", "lab", 0, HOUR), asked("b", "lab", HOUR, 2 * DAY))
    found = played(CARREL, jobs, place(*daily))
    assert (ran(found), [run.job.id for run in found.held_back]) == ({"a": [(0, 1)]}, ["b"])
    with pytest.raises(InvalidInput, match="no job ended: budgets or reservations hold them"):
        played(CARREL, jobs[1:], place(*daily))


def test_reservations_of_removed_groups_are_ignored() -> None:
    jobs = (asked("long", "lab", 8 * HOUR, 3 * HOUR),)
    assert ran(played(CARREL, jobs, place(MONDAYS_AT_TEN, groups=GROUPS[1:])))["long"] == [(8, 11)]
