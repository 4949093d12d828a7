"""Compare forecasts with their outcomes, week by week."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

from ..interfaces.run_times import ForecastOutcome, ForecastStore
from ..schemas.usage import ForecastHistoryOut, ForecastScoreOut, ForecastWeekOut

GOAL = 0.9
"""The share of run times that should lie inside their intervals."""
WEEKS = 8
MOST = 50_000
"""Number of newest outcomes that are read, of run times and of waits."""
_LEAST_RUN, _LEAST_WAIT = 1.0, 60.0
"""Seconds: errors are relative to the outcome, or to this if it is less."""


def forecast_history(store: ForecastStore, now: float) -> ForecastHistoryOut:
    """Return the sums over all users of the last weeks, the newest week first."""
    monday = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday -= timedelta(days=monday.weekday())
    starts = [(monday - timedelta(weeks=ago)).timestamp() for ago in range(WEEKS)]
    run_times = store.run_time_outcomes(since=starts[-1], limit=MOST)
    waits = store.wait_outcomes(since=starts[-1], limit=MOST)
    ends = [float("inf"), *starts]
    return ForecastHistoryOut(
        goal=GOAL,
        weeks=[
            ForecastWeekOut(
                week=f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d}",
                run_times=score(_between(run_times, start, end), least=_LEAST_RUN),
                waits=score(_between(waits, start, end), least=_LEAST_WAIT, or_less=True),
            )
            for start, end in zip(starts, ends, strict=False)
        ],
    )


def score(
    outcomes: Iterable[ForecastOutcome], *, least: float, or_less: bool = False
) -> ForecastScoreOut:
    """Return how many outcomes lie inside their intervals, and how far off the forecasts are.

    Args:
        least: errors are relative to the outcome, at least to so many seconds.
        or_less: also an outcome below its interval is as forecast: an earlier start is no fault.
    """
    censored, complete, inside = 0, 0, 0
    errors: list[float] = []
    for each in outcomes:
        if each.seconds is None:
            censored += 1
        elif each.seconds >= 0:  # less: the clock was set back
            complete += 1
            inside += each.seconds <= each.high and (or_less or each.low <= each.seconds)
            errors.append(abs(each.seconds - each.expected) / max(each.seconds, least))
    return ForecastScoreOut(
        outcomes=complete,
        inside=inside / complete if complete else None,
        median_error=median(errors) if errors else None,
        stopped=censored,
    )


def _between(
    outcomes: Sequence[ForecastOutcome], start: float, end: float
) -> list[ForecastOutcome]:
    return [each for each in outcomes if start <= each.at < end]
