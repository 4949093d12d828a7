"""Recommend a number of workers from measured steps, with its price in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ..errors import InvalidInput
from .step_samples import MOST_WORKERS, StepSample
from .step_time_model import StepForecast, fit_step_times

_TRUSTED = 2
"""A number of workers is recommended up to so many times the largest one measured."""
_SHOWN = 4
_SAME = 0.05
_TWICE = 0.05
_NOTABLE = 1.05
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerChoice:
    """What to expect of a number of workers.

    Attributes:
        workers: how many.
        nodes: the fewest nodes that they were measured on, or would need.
        batch: the work of one worker in a step.
        step: time of the step.
        speed_up: work per second, relative to the fewest workers measured.
        cost: device-seconds for the same work, relative to the fewest workers measured.
        measured: whether there is a sample of so many workers.
        measure_first: whether this is too far from the samples to be recommended.
    """

    workers: int
    nodes: int
    batch: float
    step: StepForecast
    speed_up: float
    cost: float
    measured: bool
    measure_first: bool

    @property
    def efficacy(self) -> float:
        """Speed-up for its cost: the square of the speed-up, per worker.

        Its maximum is where a further worker no longer buys as much speed as it costs (Ghosal,
        Serazzi and Tripathi, "The processor working set and its use in scheduling multiprocessor
        systems", IEEE TSE 17, 1991).
        """
        return self.speed_up / self.cost


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAdvice:
    """Choices by number of workers, and which one is recommended.

    Attributes:
        total_batch: the work of a step, where it is the same for all choices; None: the work of one
            worker is.
    """

    choices: tuple[WorkerChoice, ...]
    recommended: WorkerChoice
    total_batch: float | None


def advise_workers(
    samples: Sequence[StepSample],
    *,
    total_batch: float | None = None,
    per_node: int | None = None,
    most: int | None = None,
) -> WorkerAdvice:
    """Fit the samples of one job on one device model, and recommend a number of workers.

    Args:
        total_batch: work of a step in all; by default that of the samples if it is the same in all
            of them, otherwise the work of one worker is kept, as in the sample with most workers.
        per_node: how many workers fit on a node; by default as many as were measured on one.
        most: largest number of workers to consider; by default four times the most measured.

    Raises:
        InvalidInput: the samples are of fewer than two numbers of workers.
    """
    if not samples:
        raise InvalidInput(
            "There are no samples.", accepted="Samples of at least two numbers of workers."
        )
    return _Advisor(samples, total_batch, per_node).advice(most)


class _Advisor:
    """The samples and the model that was fitted to them."""

    def __init__(
        self, samples: Sequence[StepSample], total_batch: float | None, per_node: int | None
    ) -> None:
        self._samples = samples
        self._model = fit_step_times(samples)
        self._per_node = per_node or self._model.workers_per_node
        self._total = _common_total(samples) if total_batch is None else total_batch
        self._batch = max(samples, key=lambda each: each.workers).batch

    def advice(self, most: int | None) -> WorkerAdvice:
        fewest, *others = self._candidates(most)
        base = self._choice(fewest, None)
        choices = (base, *(self._choice(each, base) for each in others))
        recommended = max(
            (each for each in choices if not each.measure_first),
            key=lambda each: (each.efficacy, -each.workers),
        )
        return WorkerAdvice(choices=choices, recommended=recommended, total_batch=self._total)

    def _candidates(self, most: int | None) -> list[int]:
        """Return the numbers measured, and doublings of the smallest and of the largest one."""
        measured = {each.workers for each in self._samples}
        fewest, largest = min(measured), max(measured)
        limit = max(fewest, min(most or _SHOWN * largest, MOST_WORKERS))
        doublings = {
            start << times for start in (fewest, largest) for times in range(limit.bit_length())
        }
        return sorted(number for number in measured | doublings if number <= limit)

    def _choice(self, workers: int, base: WorkerChoice | None) -> WorkerChoice:
        batch = self._batch if self._total is None else self._total / workers
        measured = [each.nodes for each in self._samples if each.workers == workers]
        nodes = min(measured) if measured else ceil(workers / self._per_node)
        step = self._model.predict(workers, nodes, batch)
        speed_up = cost = 1.0
        if base is not None:
            work = workers * batch / (base.workers * base.batch)
            speed_up = work * base.step.seconds / step.seconds
            cost = workers / base.workers / speed_up
        unknown_links = nodes > 1 and not self._model.several_nodes
        return WorkerChoice(
            workers=workers,
            nodes=nodes,
            batch=batch,
            step=step,
            speed_up=speed_up,
            cost=cost,
            measured=bool(measured),
            measure_first=unknown_links or workers > _TRUSTED * self._model.most_workers,
        )


def _common_total(samples: Sequence[StepSample]) -> float | None:
    """Return the total batch of the samples; None if they have several."""
    totals = [each.total_batch for each in samples]
    return totals[0] if max(totals) - min(totals) <= _ROUNDING * max(totals) else None


def choice_note(choice: WorkerChoice, advice: WorkerAdvice) -> str:
    """Return what a table says of a choice beside its values; empty for one that was measured."""
    if choice == advice.recommended:
        return "recommended"
    if choice.measure_first:
        return "measure before"
    return "" if choice.measured else "expected"


def advice_sentences(advice: WorkerAdvice, noun: str = "worker") -> list[str]:
    """Return the recommendation and its price: what fewer and what more would mean."""
    chosen = advice.recommended
    smaller = [each for each in advice.choices if each.workers < chosen.workers]
    larger = [
        each for each in advice.choices if each.workers > chosen.workers and not each.measure_first
    ]
    found = [f"Use {_count(chosen.workers, noun)}"]
    if smaller:
        found[0] += f": {_price(chosen, smaller[-1])}"
    found[0] += "." if chosen.measured else " (expected, not measured)."
    if larger:
        found.append(f"{_count(larger[0].workers, noun)}: {_price(larger[0], chosen)}.")
    if unknown := [each for each in advice.choices if each.measure_first]:
        found.append(
            f"Measure before you use {_count(unknown[0].workers, noun)} or more: that is too far "
            "from what was measured."
        )
    if advice.total_batch is None:
        found.append(
            "The batch of one worker is the same in all rows, so that the total batch grows with "
            "the workers: that changes what the model learns."
        )
    return found


def _price(choice: WorkerChoice, other: WorkerChoice) -> str:
    faster, cost = choice.speed_up / other.speed_up, choice.cost / other.cost
    if faster >= _NOTABLE:
        speed = f"{faster:.1f} times faster than {other.workers}"
    elif faster > 1 / _NOTABLE:
        speed = f"as fast as {other.workers}"
    else:
        speed = f"{1 / faster:.1f} times slower than {other.workers}"
    return f"{speed}, {_cost(cost)}"


def _cost(ratio: float) -> str:
    if abs(ratio - 1) <= _SAME:
        return "the same cost"
    if abs(ratio - 2) <= _TWICE:
        return "twice the cost"
    return f"{ratio:.1f} times the cost"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
