"""Advice from the measurements of a probe: the fastest setting, the cheapest, the largest batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

from ...errors import InvalidInput
from ...messages import units
from ...records.json_value import Json
from .memory_curve import MemoryCurve
from .search import EQUAL, USABLE, advised, largest_allowed, memory_points
from .settings import DIMENSIONS, ProbeMeasurement, ProbeSetting, ProbeSpace

_CLOSE: Final = 0.75
"""A check at this part of the largest batch is close to it."""
_WHOLE_FROM: Final = 100
_NAMES: Final[Mapping[str, str]] = {
    "devices": "devices",
    "threads": "threads",
    "precision": "precision",
    "workers": "loader workers",
    "compiled": "compilation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeGoal:
    """What the run is to do.

    Attributes:
        unit: what the rates count: ``sample``, or ``run`` of a whole notebook.
        work: how many of these the run has; 0 if unknown.
        deadline_seconds: in which time it should have ended; 0 for none.
    """

    unit: str = "sample"
    work: float = 0.0
    deadline_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAdvice:
    """What a probe has found.

    Attributes:
        start: the measurement of the present setting.
        fastest, cheapest: the best ones by time and by device-seconds; the same for one device.
        for_deadline: the cheapest one that meets the deadline; None without a deadline, or if none
            does.
        largest_batch: the largest batch that fits into memory; 0 if unknown.
        checked_batch: the largest batch that was measured with the same other values.
        measured, combinations: how many settings were measured, of how many.
        seconds: what the probe took.
        sentences: all of this as text, with what was not measured and why.
    """

    start: ProbeMeasurement
    fastest: ProbeMeasurement
    cheapest: ProbeMeasurement
    for_deadline: ProbeMeasurement | None
    largest_batch: int
    checked_batch: int
    measured: int
    combinations: int
    seconds: float
    sentences: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """Return the advice for a file; ``null`` for a plan that there is none of."""
        late = self.for_deadline
        return {
            "start": _measurement(self.start),
            "fastest": _measurement(self.fastest),
            "cheapest": _measurement(self.cheapest),
            "for_deadline": None if late is None else _measurement(late),
            "largest_batch": self.largest_batch,
            "checked_batch": self.checked_batch,
            "measured": self.measured,
            "combinations": self.combinations,
            "seconds": round(self.seconds, 3),
            "sentences": list(self.sentences),
        }


def advise_on(
    space: ProbeSpace,
    measured: Sequence[ProbeMeasurement],
    goal: ProbeGoal,
    notes: Sequence[str] = (),
) -> ProbeAdvice:
    """Return the advice that the measurements give.

    Args:
        notes: sentences about what was not measured, or what else was seen.

    Raises:
        InvalidInput: the present setting was not measured, or has failed; the message says why.
    """
    best = advised(measured)
    if not measured or best is None or measured[0].problem:
        raise InvalidInput(
            measured[0].problem if measured else "Nothing was measured.",
            accepted="A step, or a notebook, that works with its present settings.",
        )
    good = [each for each in measured if each.rate > 0]
    cheapest = min(good, key=lambda each: (_device_seconds(each), -each.rate))
    if _device_seconds(best) <= _device_seconds(cheapest) / EQUAL:
        cheapest = best
    late = None
    if goal.deadline_seconds and goal.work:
        meets = [each for each in good if goal.work / each.rate <= goal.deadline_seconds]
        late = min(meets, key=lambda each: (_device_seconds(each), -each.rate), default=None)
    points = memory_points(measured, best.setting)
    curve = MemoryCurve.fit(points) if space.memory_limit else None
    most = largest_allowed(space, measured, best.setting)
    largest = 0 if curve is None else min(curve.largest(USABLE * space.memory_limit), most)
    checked = max((batch for batch, _ in points), default=0)
    found = ProbeAdvice(
        start=measured[0],
        fastest=best,
        cheapest=cheapest,
        for_deadline=late,
        largest_batch=max(largest, checked) if largest else 0,
        checked_batch=checked,
        measured=len(measured),
        combinations=max(space.combinations, len(measured)),
        seconds=sum(each.seconds for each in measured),
        sentences=(),
    )
    return replace(found, sentences=(*_sentences(space, measured, goal, found), *notes))


def memory_for(
    measured: Sequence[ProbeMeasurement], setting: ProbeSetting
) -> tuple[int, str] | None:
    """Return about how many bytes a setting needs, and the batches from which that follows.

    None: fewer than three batches were measured, or their memory does not grow.
    """
    points = memory_points(measured, setting)
    curve = MemoryCurve.fit(points)
    if curve is None or setting.batch is None:
        return None
    used = ", ".join(f"{batch:,}" for batch, _ in sorted(points)[-3:])
    return round(curve.bytes_of(setting.batch)), used


def setting_text(setting: ProbeSetting) -> str:
    """``batch 64, 2 threads, bfloat16``; ``the present settings`` without any dimension."""
    parts = []
    if setting.batch is not None:
        parts.append(f"batch {setting.batch:,}")
    if setting.precision is not None:
        parts.append(setting.precision)
    if setting.compiled is not None:
        parts.append("compiled" if setting.compiled else "not compiled")
    if setting.devices is not None:
        parts.append(units.devices(setting.devices))
    if setting.threads is not None:
        parts.append(units.count(setting.threads, "thread"))
    if setting.workers is not None:
        parts.append(units.count(setting.workers, "loader worker"))
    return ", ".join(parts) or "the present settings"


def batch_change(before: int, after: int) -> str:
    """Say that another batch is another learning problem, with the usual rules of the rate.

    The linear rule: Goyal et al., "Accurate, large minibatch SGD", arXiv:1706.02677. The rule of
    the square root: Krizhevsky, "One weird trick", arXiv:1404.5997; for Adam, Malladi et al.,
    "On the SDEs and scaling rules for adaptive gradient algorithms", arXiv:2205.10287.
    """
    ratio = after / before
    fewer = (
        f"{_times(ratio)} times fewer, larger"
        if ratio > 1
        else f"{_times(1 / ratio)} times more, smaller"
    )
    linear, root = _times(ratio), _times(sqrt(ratio))
    return (
        f"A batch of {after:,} instead of {before:,} changes what is learned: an epoch has {fewer} "
        f"updates. Usual rules: multiply the learning rate by {linear} for SGD (linear rule, "
        f"with warm-up), or by {root} for Adam (square root), and compare the loss. "
        "Nothing was changed for you."
    )


def _sentences(
    space: ProbeSpace,
    measured: Sequence[ProbeMeasurement],
    goal: ProbeGoal,
    found: ProbeAdvice,
) -> Iterator[str]:
    start, best = found.start, found.fastest
    yield f"Now: {setting_text(start.setting)}: {_rate(start, goal)}."
    if best.setting == start.setting:
        yield "Nothing that was measured is clearly faster."
    else:
        yield (
            f"Fastest: {setting_text(best.setting)}: {_rate(best, goal)}, "
            f"{_times(best.rate / start.rate)} times as fast."
        )
    if found.cheapest.setting != best.setting:
        cost = _device_seconds(found.cheapest) / _device_seconds(best)
        yield (
            f"Cheapest: {setting_text(found.cheapest.setting)}: {_rate(found.cheapest, goal)}, "
            f"for {cost:.0%} of the device-seconds of the fastest."
        )
    yield from _deadline(goal, found)
    yield from _memory(space, measured, found)
    before, after = start.setting.batch, best.setting.batch
    if before and after and before != after:
        yield batch_change(before, after)
    yield (
        f"Measured: {found.measured} of {found.combinations} combinations, "
        f"in {found.seconds:.1f} s."
    )
    for each in measured:
        if each.problem:
            yield f"Failed: {setting_text(each.setting)}: {each.problem}"
    missing = ", ".join(_NAMES[name] for name in DIMENSIONS if not space.choices(name))
    if missing:
        yield f"Not varied, as there is no parameter for it or only one value: {missing}."


def _deadline(goal: ProbeGoal, found: ProbeAdvice) -> Iterator[str]:
    if not goal.deadline_seconds:
        return
    within = units.duration(goal.deadline_seconds)
    if not goal.work:
        yield f"For the deadline in {within} the number of samples of the run is needed."
    elif found.for_deadline is None:
        yield f"No measured setting ends within {within}; the fastest comes closest."
    else:
        plan = found.for_deadline
        yield f"To end within {within}: {setting_text(plan.setting)}: {_rate(plan, goal)}."


def _memory(
    space: ProbeSpace, measured: Sequence[ProbeMeasurement], found: ProbeAdvice
) -> Iterator[str]:
    if found.fastest.setting.batch is None:
        yield "There is no batch to vary: the notebook has no parameter such as batch_size."
        return
    if not space.memory_limit:
        yield "The largest batch is unknown: no limit of memory can be read here."
    elif not found.largest_batch:
        yield (
            "The largest batch is unknown: memory was not seen to grow with the batch "
            f"up to {found.checked_batch:,}."
        )
    elif found.largest_batch >= space.largest:
        yield (
            f"Every batch up to {space.largest:,} fits into {units.size(space.memory_limit)}"
            f"{_failed_otherwise(measured, found)}."
        )
    else:
        share = found.checked_batch / found.largest_batch
        far = "" if share >= _CLOSE else ", which is far below; take it with care"
        yield (
            f"Largest batch that fits: about {found.largest_batch:,}, of "
            f"{units.size(space.memory_limit)} of memory, extrapolated from measurements up to "
            f"{found.checked_batch:,}{far}{_failed_otherwise(measured, found)}."
        )
    failed = next((each.setting for each in measured if each.out_of_memory), None)
    needed = memory_for(measured, failed) if failed is not None else None
    if failed is not None and needed is not None:
        yield (
            f"{setting_text(failed)} ran out of memory; it would need about "
            f"{units.size(needed[0])}, by the batches {needed[1]}."
        )


def _failed_otherwise(measured: Sequence[ProbeMeasurement], found: ProbeAdvice) -> str:
    """Return a clause about the smallest batch that fits into memory but has failed."""
    failed = [
        each.setting.batch
        for each in measured
        if each.problem
        and not each.out_of_memory
        and each.setting.batch
        and each.setting.batch <= found.largest_batch
        and each.setting.without_batch == found.fastest.setting.without_batch
    ]
    return f"; batch {min(failed):,} failed for another reason than memory" if failed else ""


def _times(factor: float) -> str:
    """Return a factor with three digits, or all of a larger whole number: ``2.5``, ``1,024``."""
    return f"{factor:,.0f}" if factor >= _WHOLE_FROM else f"{factor:.3g}"


def _rate(measurement: ProbeMeasurement, goal: ProbeGoal) -> str:
    devices = max(1, measurement.setting.devices or 1)
    if goal.unit == "run":
        seconds = goal.work / measurement.rate
        return f"about {units.about(seconds)} for the run"
    text = f"{measurement.rate:,.4g} {goal.unit}s a second"
    if not goal.work:
        return text
    seconds = goal.work / measurement.rate
    cost = f", {seconds * devices:,.0f} device-seconds" if devices > 1 else ""
    return f"{text}, {units.duration(seconds)} for the run{cost}"


def _device_seconds(measurement: ProbeMeasurement) -> float:
    """Return the device-seconds of one unit of work; one processor counts as a device."""
    return max(1, measurement.setting.devices or 1) / measurement.rate


def _measurement(found: ProbeMeasurement) -> dict[str, Json]:
    setting = found.setting
    values: dict[str, Json] = {
        name: getattr(setting, name)
        for name in ("batch", *DIMENSIONS)
        if getattr(setting, name) is not None
    }
    return {
        "setting": values,
        "rate": found.rate,
        "memory_bytes": found.memory_bytes,
        "seconds": round(found.seconds, 3),
    }
