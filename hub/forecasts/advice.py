"""Sentences about predicted run times, and the time limit that they suggest."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from types import MappingProxyType

from ..interfaces.run_times import Basis, RemainingTime, RunTimeForecast
from ..messages.units import about, count, duration
from ..schemas.requests import RemainingOut

_MARGIN = 1.25
"""A suggested limit is so many times the upper bound: a job that is cut off has run in vain."""
_STEPS = (60, 300, 900, 3600)
"""A suggested limit is a multiple of one of these, in seconds."""
_MOST_STEPS = 12

_FROM: Mapping[Basis, str] = MappingProxyType(
    {
        Basis.OWN_PARAMETERS: "of yours with the same code and parameters",
        Basis.PARAMETERS: "with the same code and parameters",
        Basis.OWN_PROGRAM: "of yours with the same code",
        Basis.PROGRAM: "with the same code",
        Basis.OWNER: "of yours",
        Basis.GROUP: "of your group",
    }
)


def suggested_limit(forecast: RunTimeForecast) -> int | None:
    """Return a time limit in seconds that such a job is unlikely to reach; None if unknown."""
    return None if forecast.basis is None else limit_above(forecast.high)


def limit_above(seconds: float) -> int:
    """Return a time limit in seconds for a run that takes at most about ``seconds``."""
    wanted = seconds * _MARGIN
    step = next((step for step in _STEPS if wanted <= step * _MOST_STEPS), _STEPS[-1])
    return max(1, ceil(wanted / step)) * step


def run_time_sentence(forecast: RunTimeForecast, limit: float) -> str:
    """Return the forecast as one to three sentences; ``limit`` is the time limit in seconds."""
    if forecast.basis is None:
        return f"Unknown: no earlier job is like this one. It may run for {duration(limit)}."
    bounds = f"{duration(forecast.low)} to {duration(forecast.high)}"
    jobs = "job" if forecast.runs == 1 else "jobs"
    shared = ""
    if forecast.saved >= 1.0:
        shared = f" Cells that trials share run once, which saves {about(forecast.saved)} of work."
    elif forecast.trials_alone:
        shared = f" Each trial counts as a whole run: {forecast.trials_alone}"
    return (
        f"About {duration(forecast.seconds)}; 9 of 10 such jobs take {bounds}, "
        f"by {forecast.runs} earlier {jobs} {_FROM[forecast.basis]}.{shared}"
    )


def remaining_out(found: RemainingTime) -> RemainingOut:
    """Return the response body of a remaining time."""
    return RemainingOut(
        seconds=found.seconds,
        low=found.low,
        high=found.high,
        by_cells=found.by_cells,
        by_trials=found.by_trials,
        by_steps=found.by_steps,
        basis=found.basis,
        runs=found.runs,
        sentence=remaining_sentence(found),
    )


def remaining_sentence(found: RemainingTime) -> str:
    """Return a remaining time as one or two sentences."""
    if not (found.by_cells or found.by_trials or found.by_steps) and found.basis is None:
        limit = duration(found.high)
        return f"Remaining time unknown: no earlier job is like this one. It may run for {limit}."
    if not (found.runs or found.by_steps):
        return "All cells have run."
    low, seconds, high = (about(each) for each in (found.low, found.seconds, found.high))
    left = f"About {seconds} left" + ("" if low == high else f" ({low} to {high})")
    if found.by_cells:
        return f"{left}, by the same cells of {count(found.runs, 'earlier job')}."
    if found.by_steps:
        return f"{left}, by the progress that it reports: no earlier job has its code."
    if found.by_trials:
        return f"{left}, by {count(found.runs, 'trial')} that {_have(found.runs)} ended."
    assert found.basis is not None
    return f"{left}, by {count(found.runs, 'earlier job')} {_FROM[found.basis]}."


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
