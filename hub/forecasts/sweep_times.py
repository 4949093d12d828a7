"""Run times of sweeps by the run times of single trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..interfaces.run_times import Basis, RemainingTime, RunTimeForecast
from ..records.requests import SweepOrder
from ..schemas import StepOut
from .sweep_stages import SweepCourse, sweep_course

_SAME_CODE = (Basis.OWN_PARAMETERS, Basis.PARAMETERS, Basis.OWN_PROGRAM, Basis.PROGRAM)
_SPREAD = math.log(2.0)
"""90 % of the trials are assumed to take between half and twice their mean."""


def is_of_same_code(forecast: RunTimeForecast) -> bool:
    return forecast.basis in _SAME_CODE


def is_of_unlike_jobs(found: RemainingTime) -> bool:
    """Return whether a remaining time is known from run times of other code alone."""
    return not (found.by_cells or found.by_trials) and found.basis not in _SAME_CODE


def sweep_forecast(
    sweep: SweepOrder,
    trial: RunTimeForecast,
    limit: float,
    cell_seconds: Sequence[float] = (),
) -> RunTimeForecast | None:
    """Return the run time of a sweep by that of its notebook alone; None if that is not known.

    Stages that trials share are counted once where it is known what they are, and which part of the
    run time each cell takes; at the upper bound none is shared, as if no kernel could be forked.
    Otherwise the typical one runs all cells in each trial, ``parallel`` trials at a time, and at
    the lower bound trials share all cells, unless sharing is off. Trials that are trained as one
    are one run.

    Args:
        cell_seconds: what each cell usually takes; empty if that is not known.
    """
    if not is_of_same_code(trial):
        return None
    course = _course(sweep, cell_seconds)
    if course is not None:
        part = course.seconds / sum(cell_seconds)
        rounds = math.ceil(sweep.trials / max(1, sweep.parallel))
        return RunTimeForecast(
            seconds=min(limit, part * trial.seconds),
            low=min(limit, part * trial.low),
            high=min(limit, max(part, rounds) * trial.high),
            basis=trial.basis,
            runs=trial.runs,
            critical=course.critical,
            saved=max(0.0, sweep.trials - course.work / sum(cell_seconds)) * trial.seconds,
        )
    rounds = 1 if sweep.together else math.ceil(sweep.trials / max(1, sweep.parallel))
    return RunTimeForecast(
        seconds=min(limit, rounds * trial.seconds),
        low=min(limit, trial.low if sweep.share else rounds * trial.low),
        high=min(limit, rounds * trial.high),
        basis=trial.basis,
        runs=trial.runs,
        trials_alone=_trials_alone(sweep),
    )


def _trials_alone(sweep: SweepOrder) -> str:
    if sweep.together or not sweep.share or sweep.trials == 1:
        return ""
    if sweep.stages is not None:
        return "the times of its cells are not known."
    return sweep.without_stages or "it is not known what trials share."


def _course(sweep: SweepOrder, cell_seconds: Sequence[float]) -> SweepCourse | None:
    if sweep.stages is None or sweep.together or not sum(cell_seconds) > 0:
        return None
    return sweep_course(sweep.stages, cell_seconds, sweep.parallel)


def remaining_of_sweep(step: StepOut | None, elapsed: float) -> RemainingTime | None:
    """Return what a running sweep has left by its trials that have ended; None before the first.

    The mean time of the trials that have ended is that of the others. Common cells have run with
    the first ones, so that it is rather too long at the beginning. All these trials have ended in
    the elapsed seconds: it is of no use for an attempt that goes on with trials of an earlier one.
    """
    if step is None or not step.of or not 1 <= step.done <= step.of:
        return None
    left = max(0.0, elapsed) * (step.of - step.done) / step.done
    factor = math.exp(_SPREAD / math.sqrt(step.done))
    return RemainingTime(
        seconds=left, low=left / factor, high=left * factor, by_trials=True, runs=int(step.done)
    )
