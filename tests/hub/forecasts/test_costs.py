"""The predicted charge of a job, and what it leaves of budgets."""

from __future__ import annotations

import pytest

from carrel.hub.forecasts.costs import expected_cost
from carrel.hub.interfaces.run_times import Basis, RunTimeForecast
from carrel.hub.schemas import BudgetOut
from carrel.hub.schemas.calendar import CostOut

HOUR = 3600.0
KNOWN = RunTimeForecast(seconds=HOUR, low=HOUR / 2, high=2 * HOUR, basis=Basis.PROGRAM, runs=3)
UNKNOWN = RunTimeForecast(seconds=4 * HOUR, low=0.0, high=4 * HOUR, basis=None)


def budget(left: float, running: float = 0.0) -> BudgetOut:
    return BudgetOut(
        group="lab", period="week", device_seconds=left, used=0.0, running=running, left=left
    )


def cost(*budgets: BudgetOut, forecast: RunTimeForecast | None = KNOWN) -> CostOut:
    found = expected_cost(2, 4 * HOUR, forecast, budgets)
    assert found is not None
    return found


def test_the_likely_charge_stands_beside_the_most() -> None:
    found = cost()
    assert (found.device_seconds, found.most) == (2 * HOUR, 8 * HOUR)
    assert (found.low, found.high) == (HOUR, 4 * HOUR)
    assert found.sentence == "Likely 2.0 device-hours (1.0 to 4.0), at most 8.0."


@pytest.mark.parametrize("forecast", [None, UNKNOWN])
def test_without_history_only_the_most_is_known(forecast: RunTimeForecast | None) -> None:
    found = cost(budget(10 * HOUR), forecast=forecast)
    assert (found.known, found.device_seconds, found.low) == (False, 8 * HOUR, 0.0)
    assert found.sentence == (
        "At most 8.0 device-hours; what is likely is not known. The budget of lab for this week "
        "has 10.0 left beside running requests: after this job at least 2.0."
    )


LEFT = {
    10.0: "10.0 left beside running requests: after this job likely 8.0, at least 2.0.",
    5.0: "5.0 left beside running requests: enough for what is likely, not for the whole time "
    "limit.",
    1.0: "1.0 left beside running requests, which is not enough.",
}


@pytest.mark.parametrize("hours", LEFT)
def test_a_budget_is_compared_with_both(hours: float) -> None:
    found = cost(budget((hours + 3) * HOUR, running=3 * HOUR))
    assert found.sentence.endswith(f"The budget of lab for this week has {LEFT[hours]}")
    (left,) = found.budgets
    assert (left.left, left.likely_left) == (hours * HOUR, (hours - 2) * HOUR)
    assert left.least_left == (hours - 8) * HOUR


def test_a_job_without_devices_costs_nothing() -> None:
    assert expected_cost(0, HOUR, KNOWN, [budget(HOUR)]) is None
