"""What a job is likely to be charged, beside the most that its time limit allows."""

from __future__ import annotations

from collections.abc import Iterable

from ..interfaces.run_times import RunTimeForecast
from ..messages.units import device_hours, device_hours_likely
from ..scheduling.model.text import hours
from ..schemas.calendar import BudgetLeftOut, BudgetOut, CostOut


def expected_cost(
    devices: int, limit: float, forecast: RunTimeForecast | None, budgets: Iterable[BudgetOut]
) -> CostOut | None:
    """Return the likely charge of one attempt; None without devices, which costs nothing.

    Args:
        limit: the time limit in seconds.
        forecast: the run time; None or unknown: the cost is only bounded by the limit.
        budgets: those that bind the request.
    """
    if not devices:
        return None
    known = forecast is not None and forecast.basis is not None
    seconds, low, high = (
        (forecast.seconds, forecast.low, forecast.high)
        if forecast is not None and known
        else (limit, 0.0, limit)
    )
    likely, most = devices * min(seconds, limit), devices * limit
    effects = [_effect(budget, likely, most) for budget in budgets]
    cost = CostOut(
        device_seconds=likely,
        low=devices * min(low, limit),
        high=devices * min(high, limit),
        most=most,
        known=known,
        budgets=effects,
        sentence="",
    )
    return cost.model_copy(update={"sentence": _sentence(cost)})


def _effect(budget: BudgetOut, likely: float, most: float) -> BudgetLeftOut:
    free = budget.device_seconds - budget.used - budget.running
    return BudgetLeftOut(
        group=budget.group,
        period=budget.period,
        left=free,
        likely_left=free - likely,
        least_left=free - most,
    )


def _sentence(cost: CostOut) -> str:
    if cost.known:
        likely = device_hours_likely(cost.device_seconds, cost.low, cost.high)
        text = f"Likely {likely}, at most {hours(cost.most)}."
    else:
        text = f"At most {device_hours(cost.most)}; what is likely is not known."
    return " ".join([text, *(_left(cost, each) for each in cost.budgets)])


def _left(cost: CostOut, budget: BudgetLeftOut) -> str:
    name = f"The budget of {budget.group} for this {budget.period}"
    beside = f"{hours(max(0.0, budget.left))} left beside running requests"
    if budget.least_left >= 0:
        likely = f"likely {hours(budget.likely_left)}, " if cost.known else ""
        return f"{name} has {beside}: after this job {likely}at least {hours(budget.least_left)}."
    if cost.known and budget.likely_left >= 0:
        return f"{name} has {beside}: enough for what is likely, not for the whole time limit."
    return f"{name} has {beside}, which is not enough."
