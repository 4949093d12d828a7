"""Choose what a probe measures next: the fastest setting first, then the largest batch.

1. The present setting.
2. From the fastest setting so far, one change at a time: the double and the half of its batch, then
   the other values of each dimension. A faster one becomes the place to go on from; with none left,
   the fastest one is found. (Coordinate search on the grid of powers of two; throughput rises with
   the batch until a device is busy, and falls where memory or caches become scarce.)
3. Memory of larger batches with the fastest values of the other dimensions, each below the
   batch that the curve of memory predicts to fit.

A setting is left out if it is not known to fit into memory, or into the time that is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log
from typing import Final

from .memory_curve import MemoryCurve, most_bytes
from .settings import DIMENSIONS, ProbeMeasurement, ProbeSetting, ProbeSpace

USABLE: Final = 0.98
"""Part of the memory limit that advice uses."""
_CHECKED_AT: Final = 0.9
"""The last check is at this part of the largest batch that is predicted to fit."""
_CLOSE_ENOUGH: Final = 0.8
_JUMP: Final = 4
_PLATEAU: Final = 0.95
"""Beyond a batch with at least this part of the best rate, one more double is tried."""
EQUAL: Final = 0.97
"""Settings with at least this part of the best rate are as fast."""
_POINTS: Final = 4
"""Batches of which the memory is measured before smaller ones tell nothing more."""
_OF_TIME_LEFT: Final = 0.25
"""A check of memory takes at most this part of the time that is left."""
_MOST_GAIN: Final = 1.3
"""A batch is faster than a smaller one at most in the ratio of both, and by chance by so much."""
_STEPS: Final = 4
"""Steps of one measurement at least, with the first ones that are not counted."""


class ProbePurpose(StrEnum):
    """What a candidate is measured for."""

    SPEED = "speed"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCandidate:
    setting: ProbeSetting
    purpose: ProbePurpose


def next_candidate(
    space: ProbeSpace, measured: Sequence[ProbeMeasurement], seconds_left: float
) -> ProbeCandidate | None:
    """Return what to measure next; None: the search has ended, or nothing more fits into the time.

    Args:
        measured: everything measured so far, in any order.
        seconds_left: time for further measurements.
    """
    if not measured:
        return ProbeCandidate(setting=space.start, purpose=ProbePurpose.SPEED)
    best = fastest(measured)
    if best is None or seconds_left <= 0:
        return None
    tried = {each.setting for each in measured}
    for setting in _changes(space, measured, best):
        if (
            setting not in tried
            and _fits(space, measured, best, setting)
            and _seconds(space, best, setting, _STEPS) <= seconds_left
        ):
            return ProbeCandidate(setting=setting, purpose=ProbePurpose.SPEED)
    batch = _memory_check(space, measured, best)
    if batch is None:
        return None
    setting = replace(best.setting, batch=batch)
    if setting in tried or _seconds(space, best, setting, 1) > _OF_TIME_LEFT * seconds_left:
        return None
    return ProbeCandidate(setting=setting, purpose=ProbePurpose.MEMORY)


def fastest(measured: Sequence[ProbeMeasurement]) -> ProbeMeasurement | None:
    """Return the measurement with the highest rate, the earliest of equal ones; None without."""
    return max((each for each in measured if each.rate > 0), key=lambda m: m.rate, default=None)


def advised(measured: Sequence[ProbeMeasurement]) -> ProbeMeasurement | None:
    """Return the fastest measurement, or one about as fast that changes less of the first one.

    Such as a smaller batch: beyond the size of the data larger ones are as fast, and each changes
    what is learned.
    """
    best = fastest(measured)
    if best is None:
        return None
    start = measured[0].setting

    def change(each: ProbeMeasurement) -> tuple[int, float, float]:
        others = sum(each.setting.choice(name) != start.choice(name) for name in DIMENSIONS)
        batches = log((each.setting.batch or 1) / (start.batch or 1))
        return others, abs(batches), -each.rate

    return min((each for each in measured if each.rate >= EQUAL * best.rate), key=change)


def next_smaller(
    measured: Sequence[ProbeMeasurement], setting: ProbeSetting
) -> ProbeMeasurement | None:
    """Return the measured rate of the next smaller batch with the same other values, if any."""
    smaller = [
        each
        for each in measured
        if each.rate > 0
        and (each.setting.batch or 0) < (setting.batch or 0)
        and each.setting.without_batch == setting.without_batch
    ]
    return max(smaller, key=lambda each: each.setting.batch or 0, default=None)


def gains_too_much(smaller: ProbeMeasurement, larger: ProbeMeasurement) -> bool:
    """Return whether a batch is faster than a smaller one by clearly more than it is larger.

    A larger batch saves steps, but no step of it takes less time: such a run has left out work.
    """
    ratio = (larger.setting.batch or 1) / (smaller.setting.batch or 1)
    gain = larger.rate / smaller.rate if larger.rate and smaller.rate else 0.0
    if larger.unit_seconds and smaller.unit_seconds:
        gain = max(gain, smaller.unit_seconds / larger.unit_seconds)
    return gain > _MOST_GAIN * ratio


def memory_points(
    measured: Sequence[ProbeMeasurement], setting: ProbeSetting
) -> list[tuple[int, int]]:
    """Return batch and bytes of all that differs from a setting by its batch only."""
    return [
        (each.setting.batch, each.memory_bytes)
        for each in measured
        if each.setting.batch is not None
        and each.memory_bytes
        and not each.problem
        and each.setting.without_batch == setting.without_batch
    ]


def largest_allowed(
    space: ProbeSpace, measured: Sequence[ProbeMeasurement], setting: ProbeSetting
) -> int:
    """Return the largest batch below all that ran out of memory with the same other values."""
    failed = [
        each.setting.batch - 1
        for each in measured
        if each.out_of_memory
        and each.setting.batch
        and each.setting.without_batch == setting.without_batch
    ]
    return min([space.largest, *failed])


def _changes(
    space: ProbeSpace, measured: Sequence[ProbeMeasurement], best: ProbeMeasurement
) -> Iterator[ProbeSetting]:
    """Yield the settings that differ from the best one by one change."""
    setting = best.setting
    for batch in _neighbours(space, measured, best):
        yield replace(setting, batch=batch)
    for name in DIMENSIONS:
        for value in space.choices(name):
            if value != setting.choice(name):
                yield setting.changed(name, value)


def _neighbours(
    space: ProbeSpace, measured: Sequence[ProbeMeasurement], best: ProbeMeasurement
) -> Iterator[int]:
    batch = best.setting.batch
    if batch is None:
        return
    upper = min(batch * 2, space.largest)
    yield upper
    plateau = any(
        each.setting == replace(best.setting, batch=upper) and each.rate >= _PLATEAU * best.rate
        for each in measured
    )
    if plateau:
        yield min(batch * 4, space.largest)
    if batch // 2 >= space.smallest:
        yield batch // 2


def _fits(
    space: ProbeSpace,
    measured: Sequence[ProbeMeasurement],
    best: ProbeMeasurement,
    setting: ProbeSetting,
) -> bool:
    """Return whether a setting is known to fit into memory."""
    if (setting.batch or 0) > largest_allowed(space, measured, setting):
        return False
    if not space.memory_limit or not best.memory_bytes or setting.batch is None:
        return True
    points = memory_points(measured, setting)
    curve = MemoryCurve.fit(points)
    if curve is not None:
        return curve.bytes_of(setting.batch) <= USABLE * space.memory_limit
    if not points:
        # Twice: of other numbers of bits, or of copies for a compiler.
        return 2 * best.memory_bytes <= USABLE * space.memory_limit
    return most_bytes(points, setting.batch) <= USABLE * space.memory_limit


def _seconds(space: ProbeSpace, best: ProbeMeasurement, setting: ProbeSetting, steps: int) -> float:
    """Return how long some steps will take at about the best rate."""
    if space.whole_runs or setting.batch is None or best.setting.batch is None:
        return best.seconds
    least = best.seconds if steps > 1 else 0.0
    return max(least, steps * setting.batch / best.rate)


def _memory_check(
    space: ProbeSpace, measured: Sequence[ProbeMeasurement], best: ProbeMeasurement
) -> int | None:
    """Return the batch whose memory to measure next; None: none needs to, or none is safe."""
    points = memory_points(measured, best.setting)
    if not space.memory_limit or not points or best.setting.batch is None:
        return None
    largest = largest_allowed(space, measured, best.setting)
    top = max(points)[0]
    usable = USABLE * space.memory_limit
    curve = MemoryCurve.fit(points)
    if curve is None:
        return _batch_for_curve(replace(space, largest=largest), points, usable)
    edge = min(curve.largest(usable), largest)
    if top >= _CLOSE_ENOUGH * edge:
        return None
    batch = min(int(_CHECKED_AT * edge), top * (_JUMP if curve.trusted else 2))
    return batch if batch > top else None


def _batch_for_curve(
    space: ProbeSpace, points: Sequence[tuple[int, int]], usable: float
) -> int | None:
    """Return a batch that makes the curve known: a larger one if that is safe, or a smaller one."""
    low, top = min(points)[0], max(points)[0]
    for factor in (_JUMP, 2):
        batch = min(factor * top, space.largest)
        if batch > top and most_bytes(points, batch) <= usable:
            return batch
    smaller = low // 2
    return smaller if smaller >= max(1, space.smallest) and len(points) < _POINTS else None
