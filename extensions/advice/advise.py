"""``carrel.advise(step, make_batch)``: the fastest and the largest batch of a training step.

It runs the step with a few settings, in this process, and says what it has measured. The search and
the sentences are in ``hub.insight.probes``; here steps run, and time and memory are measured.
"""

from __future__ import annotations

import html
import inspect
import math
import operator
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

from ...hub.errors import InvalidInput
from ...hub.insight.probes.advice import ProbeAdvice, ProbeGoal, advise_on, memory_for, setting_text
from ...hub.insight.probes.search import ProbePurpose, fastest, next_candidate
from ...hub.insight.probes.settings import (
    DIMENSIONS,
    ProbeMeasurement,
    ProbeSetting,
    ProbeSpace,
)
from ...hub.messages import units
from ..runtime.progress import progress
from . import thread_count
from .gain_check import check_gain
from .memory_meter import MemoryMeter, cuda
from .step_clock import StepTimeout, seconds_of_step, time_limit

LONGEST: Final = 120.0
"""Seconds of a probe at most, unless ``budget`` says otherwise."""
SHARE: Final = 0.05
"""Of a run of known length, a probe takes at most this part."""
_PARAMETERS: Final = {name: name for name in DIMENSIONS} | {"compiled": "compile"}
_MOST_FILES: Final = 10_000
_SHOWN_FILES: Final = 5


class Advice:
    """What ``carrel.advise`` has found; printing it, or a cell's last line, shows the sentences.

    Attributes:
        found: the plans as values; ``found.fastest.setting.batch``, ``found.largest_batch``.
        measured: all measurements, in their order.
    """

    def __init__(self, found: ProbeAdvice, measured: Sequence[ProbeMeasurement]) -> None:
        self.found = found
        self.measured = tuple(measured)

    def memory_for(self, batch: int) -> int | None:
        """Return about how many bytes a batch needs; None if too little was measured."""
        fastest = self.found.fastest.setting
        wanted = ProbeSetting(
            batch=batch,
            **{name: fastest.choice(name) for name in DIMENSIONS},  # type: ignore[arg-type]
        )
        found = memory_for(self.measured, wanted)
        return None if found is None else found[0]

    def __str__(self) -> str:
        return "\n".join(self.found.sentences)

    def __repr__(self) -> str:
        return f"<Advice: {setting_text(self.found.fastest.setting)} is the fastest>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(setting_text(each.setting))}</td>"
            f"<td>{f'{each.rate:,.4g}' if each.rate else ''}</td>"
            f"<td>{units.size(each.memory_bytes) if each.memory_bytes else ''}</td></tr>"
            for each in self.measured
        )
        said = "".join(f"<li>{html.escape(each)}</li>" for each in self.found.sentences)
        return (
            f"<ul>{said}</ul><table><thead><tr><th style='text-align:left'>Setting</th>"
            f"<th>Per second</th><th>Peak memory</th></tr></thead><tbody>{rows}</tbody></table>"
        )


def advise(  # one argument for each dimension, all but two optional
    step: Callable[..., object],
    make_batch: Callable[..., object],
    *,
    batch: int = 32,
    samples: float = 0,
    deadline: float = 0,
    largest: int = 1 << 20,
    budget: float | None = None,
    memory: int = 0,
    threads: Sequence[int] | None = None,
    precision: Sequence[str] | None = None,
    devices: Sequence[int] | None = None,
    workers: Sequence[int] | None = None,
    compile: Sequence[bool] | None = None,  # as PyTorch calls it
) -> Advice:
    """Measure a training step with several batches and other settings, and advise on them.

    The step runs many times and changes your model: create the model again before you train.

    >>> def step(data): ...  # one update of the model
    >>> print(carrel.advise(step, lambda size: (x[:size], y[:size]), batch=32, samples=60_000))

    Args:
        step: called with a batch. Of ``precision``, ``compile``, ``devices`` and ``workers``, those
            are varied which it, or ``make_batch``, has as a parameter; ``threads`` always.
        make_batch: called with a size, returns a batch of so many samples; its time counts.
        batch: the size that you use now.
        samples: how many samples the whole run trains on, for its predicted time; 0 if unknown.
        deadline: seconds in which the whole run should end; 0 for none.
        largest: no larger batch is tried or advised, such as the size of your data.
        budget: seconds of the probe; by default 120, and at most 5 % of the predicted run.
        memory: bytes that the run may use; by default what this process, or the device, can have.
        threads, precision, devices, workers, compile: the values to try instead of the usual ones.

    Raises:
        InvalidInput: an argument is invalid; or the step has failed, or has not ended, with the
            present batch.
    """
    batch, largest = _whole_number("batch", batch), _whole_number("largest batch", largest)
    _check(
        batch,
        largest,
        {"number of samples": samples, "deadline": deadline, "memory": memory},
    )
    allowed = LONGEST if budget is None else checked_budget(budget)
    runner = _StepRunner(
        step=step,
        make_batch=make_batch,
        step_has=_parameters(step),
        batch_has=_parameters(make_batch),
        meter=MemoryMeter(),
        samples=SHARE * samples if samples and budget is None else math.inf,
    )
    choices = _choices(
        runner.step_has | runner.batch_has,
        {
            "threads": threads,
            "precision": precision,
            "devices": devices,
            "workers": workers,
            "compiled": compile,
        },
    )
    varied: dict[str, Any] = {name: values for name, values in choices.items() if len(values) > 1}
    space = ProbeSpace(
        start=ProbeSetting(
            batch=batch, **{name: values[0] for name, values in choices.items() if values}
        ),
        largest=largest,
        memory_limit=memory or runner.meter.limit(),
        **varied,
    )
    goal = ProbeGoal(work=samples, deadline_seconds=deadline)
    before = _files()
    measured = _measure(space, runner, goal, allowed, by_share=budget is None)
    return Advice(advise_on(space, measured, goal, list(_notes(before, runner))), measured)


def _choices(
    parameters: set[str], given: Mapping[str, Sequence[Any] | None]
) -> dict[str, tuple[Any, ...]]:
    """Return the values to try of each dimension that the functions have, the present one first.

    Raises:
        InvalidInput: values are given for a dimension that they do not have, or none of one.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for name in DIMENSIONS:
        values = given[name]
        if values is not None and not values:
            raise InvalidInput(
                f"{_PARAMETERS[name]} has no value to try.", accepted="At least one value, or None."
            )
        if name == "threads" or _PARAMETERS[name] in parameters:
            found[name] = _usual(name) if values is None else tuple(values)
        elif values is not None:
            raise InvalidInput(
                f"Neither the step nor make_batch has a parameter {_PARAMETERS[name]}.",
                accepted=f"def step(data, {_PARAMETERS[name]}=…)",
            )
    return found


def _whole_number(name: str, value: int) -> int:
    """Return a whole number, of NumPy too. Raises InvalidInput for anything else."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise InvalidInput(
            f"The {name} {value} is not possible.", accepted="A whole number from 1."
        ) from error


def _check(batch: int, largest: int, numbers: Mapping[str, float]) -> None:
    if not 1 <= batch <= largest:
        raise InvalidInput(
            f"The batch {batch} is not possible.", accepted=f"A whole number from 1 to {largest}."
        )
    for name, number in numbers.items():
        if not (math.isfinite(number) and number >= 0):
            raise InvalidInput(
                f"The {name} {number} is not possible.", accepted="A number; 0 for unknown."
            )


def checked_budget(budget: float) -> float:
    """Return the seconds of a probe. Raises InvalidInput: they are no positive number."""
    if not (math.isfinite(budget) and budget > 0):
        raise InvalidInput(
            f"The budget {budget} is not possible.", accepted="A positive number of seconds."
        )
    return budget


def _parameters(function: Callable[..., object]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of compiled code
        return set()


def _usual(name: str) -> tuple[Any, ...]:
    """Return the values of a dimension that are tried by default, the present one first."""
    device = cuda()
    if name == "threads":
        most = thread_count.processors()
        if not thread_count.can_limit() or device is not None:
            return ()
        powers = [1 << power for power in range(most.bit_length()) if 1 << power < most]
        return (most, *reversed(powers))
    if name == "precision":
        return ("float32", "bfloat16") if device is None else ("float32", "bfloat16", "float16")
    if name == "devices":
        count = 1 if device is None else device.device_count()
        return tuple(1 << power for power in range(count.bit_length()))
    if name == "workers":
        return tuple(sorted({0, 1, 2, thread_count.processors()}))
    return (False, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepRunner:
    """Runs the step with a setting, and measures it.

    Attributes:
        samples: of all repetitions of one measurement at most, but for the least number of steps.
        not_numbers: the settings with which the step has returned NaN or an infinite number.
        doubts: sentences about the present setting.
        sized: places of the arrays whose first axis was as long as the first batch.
    """

    step: Callable[..., object]
    make_batch: Callable[..., object]
    step_has: set[str]
    batch_has: set[str]
    meter: MemoryMeter
    samples: float = math.inf
    not_numbers: list[ProbeSetting] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    sized: list[int] = field(default_factory=list)

    def measure(
        self,
        setting: ProbeSetting,
        purpose: ProbePurpose,
        seconds: float,
        best_rate: float = 0.0,
    ) -> ProbeMeasurement:
        """Return what a setting needs; its time only roughly where it is clearly not the best."""
        start = time.perf_counter()
        rate, problem, out_of_memory = 0.0, "", False
        size = setting.batch or 1
        self.meter.reset()
        returned: list[object] = [None]

        def once() -> None:
            returned[0] = self._run(setting)

        try:
            with time_limit(seconds), thread_count.threads(self._threads(setting)):
                taken = seconds_of_step(
                    once,
                    warm_up=purpose is ProbePurpose.SPEED,
                    most_steps=self.samples / size,
                    best_seconds=size / best_rate if best_rate else math.inf,
                )
                if _is_no_number(returned[0]):
                    self.not_numbers.append(setting)
            rate = size / max(taken, 1e-9) if purpose is ProbePurpose.SPEED else 0.0
        except StepTimeout:
            problem = f"it did not end within {units.duration(max(1.0, seconds))}."
        except Exception as error:  # of the user's step; the advice says it
            out_of_memory = _is_out_of_memory(error)
            text = " ".join(f"{type(error).__name__}: {error}".split())
            problem = units.complete_sentence(text[:200].removesuffix(":"))
        return ProbeMeasurement(
            setting=setting,
            rate=rate,
            memory_bytes=self.meter.peak(),
            seconds=time.perf_counter() - start,
            problem=problem,
            out_of_memory=out_of_memory,
        )

    def _threads(self, setting: ProbeSetting) -> int | None:
        return None if "threads" in self.step_has else setting.threads

    def _run(self, setting: ProbeSetting) -> object:
        values = {
            _PARAMETERS[name]: setting.choice(name)
            for name in DIMENSIONS
            if setting.choice(name) is not None
        }
        for_batch = {name: value for name, value in values.items() if name in self.batch_has}
        data = self.make_batch(setting.batch, **for_batch)
        self._check_size(data, setting.batch or 1)
        known = {name: value for name, value in values.items() if name in self.step_has}
        return self.step(data, **known)

    def _check_size(self, data: object, size: int) -> None:
        """Raise ValueError if a batch has fewer samples than it should, as at the end of the data.

        Its rate would be that of samples that it does not have.
        """
        lengths = _lengths(data)
        found = max((lengths[place] for place in self.sized if place < len(lengths)), default=size)
        if found < size:
            raise ValueError(
                f"make_batch returned {found:,} samples instead of {size:,}: the batch can "
                "be larger than the data"
            )
        if not self.sized:
            self.sized.extend(place for place, length in enumerate(lengths) if length == size)


def _lengths(data: object) -> list[int]:
    """Return the lengths of the arrays, tensors and sequences of a batch; 0 for anything else."""
    if isinstance(data, Mapping):
        data = tuple(data.values())
    found: list[int] = []
    for each in data if isinstance(data, tuple) else (data,):
        shape = getattr(each, "shape", None)
        if isinstance(shape, tuple):
            found.append(shape[0] if shape else 0)
        else:
            found.append(len(each) if isinstance(each, bytes | str | list) else 0)
    return found


def _is_no_number(returned: object) -> bool:
    """Whether a step has returned NaN or an infinite number, also as a tensor of one element."""
    detach = getattr(returned, "detach", None)  # of a tensor
    try:
        return not math.isfinite(detach() if callable(detach) else returned)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return False


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _measure(
    space: ProbeSpace, runner: _StepRunner, goal: ProbeGoal, allowed: float, *, by_share: bool
) -> list[ProbeMeasurement]:
    """Measure until the search has ended, or the seconds allowed.

    Args:
        by_share: also end after a part of the run, if that is known.
    """
    measured: list[ProbeMeasurement] = []
    started = time.perf_counter()
    while True:
        left = allowed - (time.perf_counter() - started)
        candidate = next_candidate(space, measured, left)
        if candidate is None:
            return measured
        best = fastest(measured)
        best_rate = best.rate if best else 0.0
        found = runner.measure(candidate.setting, candidate.purpose, left, best_rate)
        measured.append(found)

        def seconds_left(end: float = started + allowed) -> float:
            return end - time.perf_counter()

        def again(
            setting: ProbeSetting, seconds_left: Callable[[], float] = seconds_left
        ) -> ProbeMeasurement:
            return runner.measure(setting, ProbePurpose.SPEED, seconds_left())

        doubt = check_gain(measured, again, seconds_left)
        runner.doubts.extend([doubt] if doubt else [])
        progress(len(measured), text=setting_text(candidate.setting))
        if len(measured) == 1 and found.problem:
            raise InvalidInput(
                f"The step failed with {setting_text(found.setting)}: {found.problem}",
                accepted="A step, and a batch, that work; with budget=SECONDS for a slow step.",
            )
        if len(measured) == 1 and by_share and goal.work and found.rate:
            allowed = min(allowed, SHARE * goal.work / found.rate)


def _notes(before: Mapping[Path, tuple[int, int]], runner: _StepRunner) -> Iterator[str]:
    yield from runner.doubts
    if runner.not_numbers:
        settings = "; ".join(map(setting_text, dict.fromkeys(runner.not_numbers)))
        yield f"The step returned NaN or an infinite number with: {settings}. Check the loss there."
    changed = sorted(path.name for path, stat in _files().items() if before.get(path) != stat)
    if changed:
        more = f" and {len(changed) - _SHOWN_FILES} more" if len(changed) > _SHOWN_FILES else ""
        shown = ", ".join(changed[:_SHOWN_FILES])
        yield f"Files in this folder were written during the probe: {shown}{more}."
    if runner.meter.kind == "process" and os.environ.get("CARREL_DEVICES"):
        yield "No device was measured: PyTorch is not imported, or sees no CUDA device."
    yield "The steps have changed your model: create it again before you train."


def _files() -> dict[Path, tuple[int, int]]:
    """Return time and size of the files in the working folder, without those in folders."""
    found: dict[Path, tuple[int, int]] = {}
    try:
        for number, path in enumerate(Path.cwd().iterdir()):
            if number >= _MOST_FILES:
                break
            stat = path.lstat()
            if S_ISREG(stat.st_mode):
                found[path] = stat.st_mtime_ns, stat.st_size
    except OSError:
        pass
    return found
