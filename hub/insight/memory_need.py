"""Extrapolate how much memory a job would have needed that ran out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .memory_growth import SteadyGrowth
from .past_runs import PlannedRun
from .probes.memory_curve import MemoryCurve
from .scaling_law import ScalingRun, fit_law, sizes_of

_NEWEST: Final = 3
"""Number of newest jobs with the same parameters whose highest peak counts."""
_BEYOND: Final = 4
"""A line is used up to so many times the largest value of the earlier jobs."""


class NeedBasis(StrEnum):
    """What an amount of memory is known from."""

    SAME_PARAMETERS = "same_parameters"
    """Jobs with the same code and parameters that were completed."""
    OTHER_PARAMETERS = "other_parameters"
    """How the memory of jobs with the same code depends on their parameters."""
    GROWTH = "growth"
    """Its steady growth, up to the end of the run."""
    PEAK = "peak"
    """What it used, and asked for, when memory ran out: a lower bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """How much memory a job would have needed.

    Attributes:
        amount: in bytes.
        runs: how many earlier jobs it is known from; their highest peak for ``SAME_PARAMETERS``.
        rate: bytes in a second by which its memory grew; for ``GROWTH``.
    """

    amount: int
    basis: NeedBasis
    runs: int = 0
    rate: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedRun:
    """A job with the same code that was completed, and the peak of its memory in bytes."""

    plan: PlannedRun
    peak: int


def memory_need(
    plan: PlannedRun | None,
    peak: int,
    earlier: Sequence[CompletedRun],
    growth: SteadyGrowth | None = None,
    seconds_left: float = 0.0,
) -> MemoryNeed | None:
    """Return what a job would have needed, by the first of these that says more than ``peak``.

    1. the highest peak of the newest jobs with the same parameters
    2. how peaks depend on the parameters: a power law, or with fewer jobs a line or a parabola in
       the only parameter that differs
    3. its steady growth, for as long as it would have run
    4. its peak, as a lower bound

    Args:
        plan: the job; None for one that is compared with no other.
        peak: bytes that it used, and asked for, when memory ran out; 0 if unknown.
        earlier: oldest first.
        seconds_left: how long it would have run; 0 if unknown.

    Returns:
        None if nothing is known.
    """
    if plan is not None:
        alike = [run for run in earlier if _alike(run.plan, plan)]
        same = max((run.peak for run in alike[-_NEWEST:]), default=0)
        if same > peak:
            runs = min(len(alike), _NEWEST)
            return MemoryNeed(amount=same, basis=NeedBasis.SAME_PARAMETERS, runs=runs)
        comparable = [] if alike else _comparable(plan, earlier)
        found = round(_by_parameters(plan, comparable) or 0)
        if found > peak:
            return MemoryNeed(amount=found, basis=NeedBasis.OTHER_PARAMETERS, runs=len(comparable))
    if not peak:
        return None
    if growth is not None and seconds_left > 0:
        amount = round(peak + growth.rate * seconds_left)
        return MemoryNeed(amount=amount, basis=NeedBasis.GROWTH, rate=growth.rate)
    return MemoryNeed(amount=peak, basis=NeedBasis.PEAK)


def _alike(one: PlannedRun, other: PlannedRun) -> bool:
    return one.parameters == other.parameters and one.devices == other.devices


def _comparable(plan: PlannedRun, earlier: Sequence[CompletedRun]) -> list[CompletedRun]:
    """Return the measured runs whose parameters differ from those of a job in numbers only."""
    texts = _texts(plan)
    return [run for run in earlier if run.peak > 0 and _texts(run.plan) == texts]


def _by_parameters(plan: PlannedRun, runs: Sequence[CompletedRun]) -> float | None:
    """Return the bytes that the parameters of a job let expect; None if they tell nothing."""
    # The law holds for any positive quantity of a run.
    law = fit_law([ScalingRun(sizes_of(run.plan), run.peak) for run in runs])
    if law is not None:
        return law.seconds(plan)
    sizes, known = sizes_of(plan), [sizes_of(run.plan) for run in runs]
    names = [name for name in sizes if any(each.get(name) != sizes[name] for each in known)]
    if len(names) != 1:
        return None
    at, values = sizes[names[0]], [each.get(names[0], 0.0) for each in known]
    if not all(value > 0 and value.is_integer() for value in [at, *values]):
        return None
    peaks = zip(values, (run.peak for run in runs), strict=True)
    curve = MemoryCurve.fit((int(value), peak) for value, peak in peaks)
    if curve is None or at > _BEYOND * curve.origin:
        return None
    return curve.bytes_of(int(at))


def _texts(plan: PlannedRun) -> dict[str, object]:
    return {name: value for name, value in plan.parameters.items() if isinstance(value, str)}
