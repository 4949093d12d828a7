"""What quotas would have refused is no part of a replay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.budget import Budget, Period
from carrel.hub.simulation.admission import admitted
from carrel.hub.simulation.jobs import Trace
from carrel.hub.simulation.quota_file import wide_open

from .kit import job

SITE = replace(wide_open("site", 8), max_seconds=3600)
LAB = replace(wide_open("lab", 8), parent="site")
HOUR_A_WEEK = Budget(device_seconds=3600, period=Period.WEEK)


def trace(*jobs: dict[str, object]) -> Trace:
    made = (
        job(str(number), 0, 60, tenant="lab", **given)  # type: ignore[arg-type]
        for number, given in enumerate(jobs)
    )
    return Trace(name="own", jobs=tuple(made), left_out={"broken": 2})


def test_who_asks_for_more_time_than_a_group_above_allows_is_left_out_and_counted() -> None:
    given = trace({"limit": 3600.0}, {"limit": 3601.0}, {})
    found = admitted(given, (SITE, LAB))
    assert [each.id for each in found.jobs] == ["0", "2"]
    assert found.left_out == {"broken": 2, "asked for more time than site allows": 1}


def test_without_a_time_limit_it_counts_how_long_it_ran() -> None:
    found = admitted(trace({"limit": 30.0}, {}), (replace(LAB, parent=None, max_seconds=59),))
    assert [each.id for each in found.jobs] == ["0"]


def test_who_asks_for_more_than_a_whole_budget_is_left_out_and_counted() -> None:
    given = trace({"limit": 1800.0, "devices": 2}, {"limit": 1801.0, "devices": 2})
    found = admitted(given, (SITE, replace(LAB, budget=HOUR_A_WEEK)))
    assert [each.id for each in found.jobs] == ["0"]
    assert found.left_out == {"broken": 2, "asked for more than the whole budget of lab": 1}


def test_what_nobody_limits_stays_as_it_is() -> None:
    given = trace({"limit": 1e9})
    assert admitted(given, ()) is given
    assert admitted(given, (replace(LAB, parent=None),)) is given


def test_that_nothing_would_be_accepted_is_an_error_of_the_quota() -> None:
    with pytest.raises(
        InvalidInput, match="All of own would be refused: 2 asked for more time than site allows"
    ):
        admitted(trace({"limit": 3601.0}, {"limit": 9999.0}), (SITE, LAB))
