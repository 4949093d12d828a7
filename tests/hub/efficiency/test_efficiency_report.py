"""What was held and not used: sums, who may see them, and when."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from carrel.hub.efficiency.report import WEEK, EfficiencyReports, day_text, measured_use
from carrel.hub.errors import InvalidInput, NotFound
from carrel.hub.interfaces.store import Store
from carrel.hub.messages import efficiency as messages
from carrel.hub.records.identity import Identity
from carrel.hub.records.usage import DAY
from carrel.hub.records.utilization import (
    AttemptUtilization,
    UtilizationPoint,
    UtilizationSeries,
)
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.usage.rollup import monday

from ...contracts.store_kit import device, job, running
from ...stores import new_store
from ..doubles import ADMIN

HOUR = 3600.0
START = monday(1_800_000_000.0)
"""A Monday."""
ADA, TEACHER = Identity(name="ada"), Identity(name="teacher")


def series(*percents: float | None) -> UtilizationSeries:
    """Return hours of such use."""
    points = [UtilizationPoint(device_percent=each, readings=1) for each in percents]
    return UtilizationSeries(seconds=HOUR, points=tuple(points))


def store_with(*jobs: tuple[str, float, Sequence[float | None]]) -> Store:
    """Return a store with jobs of one device: owner, start, and the use in each hour."""
    store = new_store()
    store.put_group(Group(name="lab", max_devices=99, max_devices_per_user=99))
    store.set_teachers("lab", ["teacher"])
    for number, (owner, at, percents) in enumerate(jobs):
        store.sync_devices(f"n{number}", [device(f"D{number}", 0, node=f"n{number}")])
        lease = running(store, job(str(number), owner=owner), f"D{number}", at=at)
        ends = at + HOUR * len(percents)
        store.renew({lease.id: ends}, until=ends)
        store.charge([lease.id], now=ends)
        store.put_utilization({lease.id: series(*percents)})
    return store


def test_hours_are_weighted_by_time_and_cut_at_the_ends_of_the_week() -> None:
    attempt = AttemptUtilization(
        lease_id="l", request_id="r", epoch=1, granted_at=0.0, series=series(100, 0, None, 50)
    )

    whole = measured_use([attempt], 0.0, WEEK)
    assert (whole.measured, whole.used, whole.idle) == (3 * HOUR, 0.5, pytest.approx(1 / 3))
    part = measured_use([attempt], HOUR / 2, 1.5 * HOUR)
    assert (part.measured, part.used, part.idle) == (HOUR, 0.5, 0.5)
    assert measured_use([], 0.0, WEEK).measured == 0


def test_owners_see_their_own_running_week_with_the_least_used_first() -> None:
    own = [("ada", START, hours) for hours in ([10, 10], [0, 0, 0], [90])]
    store = store_with(*own, ("ben", START, [0]))
    found = EfficiencyReports(store, lambda: START + DAY).report(ADA)

    assert [row.request_id for row in found.rows] == ["j-1", "j-0"]
    assert [row.unused_device_seconds for row in found.rows] == [DAY, 0.9 * DAY]
    assert found.rows[0].idle == 1.0
    assert (found.ended, found.measured_device_seconds) == (False, found.device_seconds)


def test_teachers_see_a_week_of_their_group_only_when_it_has_ended() -> None:
    store = store_with(("ada", START, [0]), ("ben", START, [20]))
    during = EfficiencyReports(store, lambda: START + DAY)
    with pytest.raises(InvalidInput, match="has not ended"):
        during.report(TEACHER, week=START, group="lab")
    assert during.report(TEACHER, group="lab").rows == []

    after = EfficiencyReports(store, lambda: START + WEEK).report(TEACHER, group="lab")
    assert (after.since, after.ended) == (START, True)
    assert [row.owner for row in after.rows] == ["ada", "ben"]


def test_a_group_is_shown_to_its_teachers_and_administrators_only() -> None:
    reports = EfficiencyReports(store_with(), lambda: START)
    with pytest.raises(NotFound):
        reports.report(ADA, group="lab")
    with pytest.raises(NotFound):
        reports.report(ADMIN, group="nowhere")
    assert reports.report(ADMIN, group="lab").rows == []


def test_a_week_that_has_not_begun_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has not begun"):
        EfficiencyReports(store_with(), lambda: START).report(ADA, week=START + WEEK)


def test_use_that_was_not_measured_is_not_called_unused() -> None:
    store = store_with(("ada", START, [None, None]))
    found = EfficiencyReports(store, lambda: START + DAY).report(ADA)

    assert (found.rows, found.unused_device_seconds) == ([], 0.0)
    assert messages.summary(found).endswith("Their use was not measured.")


def test_weeks_begin_on_monday() -> None:
    assert day_text(monday(START + 6.9 * DAY)) == day_text(START)
    assert day_text(monday(1_795_862_400.0)) == "2026-11-23"
