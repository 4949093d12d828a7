"""Several models on several accelerators, each request before its deadline: ``schedule``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...hub.errors import InvalidInput
from .deadlines.cost_table import Clock, CostTable
from .deadlines.models import CPU, load
from .deadlines.scheduler import OFFLOADED, DeadlineScheduler, DeadlineWorker, is_seconds
from .explanation import ExecutionExplanation


class ScheduledModels(DeadlineScheduler):
    """What ``schedule`` returns. Use it in a ``with``."""

    def explanation(self) -> ExecutionExplanation:
        return ExecutionExplanation(notes=self.told())


def schedule(
    models: Mapping[str, object],
    accelerators: Sequence[str],
    deadlines: Mapping[str, float],
    *,
    samples: Mapping[str, Any],
    periods: Mapping[str, float] | None = None,
    offload: Callable[[str, Any], Any] | None = None,
    offload_at_once: int = 1,
    clock: Clock = time.monotonic,
) -> ScheduledModels:
    """Execute requests to models before their deadlines.

    Each model is timed on each kind of accelerator first, and at each run from then on. Requests
    run by earliest deadline; one that cannot be answered in time is refused at once.

    Args:
        models: by name, the path of an ONNX file, or a function of the inputs.
        accelerators: one entry a worker: ``cpu`` (the cores are divided among these), ``cuda:0``.
        deadlines: by model, seconds from the submission to the end.
        samples: by model, inputs such as it will get.
        periods: by model, seconds between two requests, if they come regularly: more than the
            accelerators can do is refused here.
        offload: executes a model by name, on inputs, on a device elsewhere, for requests that the
            accelerators here would miss. It is timed with the samples too.
        offload_at_once: how many requests that device executes at a time.

    Raises:
        InvalidInput: what is passed has another form; a model cannot be loaded; a deadline that no
            accelerator can meet; more load than they can bear; a name without deadline or sample;
            a deadline or period of what is no model.
        Exception: whatever a model raises on its sample.
    """
    _check_names(models, accelerators, deadlines, samples, periods or {})
    if offload is not None and (not callable(offload) or offload_at_once < 1):
        raise InvalidInput(
            f"Requests cannot be offloaded to {offload!r:.40}, {offload_at_once} at a time.",
            accepted="A function of the name of a model and its inputs, and at least 1 at a time.",
        )
    cpus = sum(each == CPU for each in accelerators)
    threads = max(1, len(os.sched_getaffinity(0)) // max(1, cpus))
    workers = [
        DeadlineWorker(
            kind, _name(kind, at), {name: load(models[name], kind, threads) for name in models}
        )
        for at, kind in enumerate(accelerators, 1)
    ]
    if offload is not None:
        away = {name: partial(offload, name) for name in models}
        workers += [
            DeadlineWorker(OFFLOADED, f"another device, request {at} at a time", away)
            for at in range(1, offload_at_once + 1)
        ]
    costs = CostTable([each.kind for each in workers])
    for worker in {each.kind: each for each in workers}.values():
        for name, execute in worker.models.items():
            costs.measure(name, worker.kind, partial(execute, samples[name]), clock)
    _check_load(costs, deadlines, periods, len(workers))
    return ScheduledModels(workers, deadlines, costs, clock=clock)


def _name(kind: str, number: int) -> str:
    return f"CPU worker {number}" if kind == CPU else f"{kind}, worker {number}"


def _check_names(
    models: Mapping[str, object],
    accelerators: Sequence[str],
    deadlines: Mapping[str, float],
    samples: Mapping[str, Any],
    periods: Mapping[str, float],
) -> None:
    for what, named in (
        ("models", models), ("deadlines", deadlines), ("samples", samples), ("periods", periods),
    ):  # fmt: skip  # a list
        if not isinstance(named, Mapping):
            raise InvalidInput(
                f"The {what} are {type(named).__name__}.", accepted="A dict by names of models."
            )
    if isinstance(accelerators, str):
        raise InvalidInput(
            f"The accelerators are one text, {accelerators!r:.40}.",
            accepted=f'A list such as ["{CPU}", "{CPU}"].',
        )
    if not models or not accelerators:
        raise InvalidInput("There is nothing to schedule.", accepted="A model and an accelerator.")
    for what, given in (("deadline", deadlines), ("sample", samples)):
        if missing := sorted(models.keys() - given.keys()):
            raise InvalidInput(
                f"These models have no {what}: {', '.join(missing)}.",
                accepted=f"A {what} for each of: {', '.join(models)}.",
            )
    for what, given in (("deadline", deadlines), ("period", periods)):
        if unknown := sorted(given.keys() - models.keys()):
            raise InvalidInput(
                f"These names have a {what}, and are no models: {', '.join(unknown)}.",
                accepted=f"The names of the models: {', '.join(models)}.",
            )
    for what, given in (("deadlines", deadlines), ("periods", periods)):
        if wrong := [name for name, each in given.items() if not _is_positive(each)]:
            raise InvalidInput(
                f"These {what} are not above 0 s: {', '.join(wrong)}.",
                accepted="Seconds, such as 0.05, by the name of a model.",
            )


def _is_positive(seconds: object) -> bool:
    return is_seconds(seconds) and float(seconds) > 0


def _check_load(
    costs: CostTable,
    deadlines: Mapping[str, float],
    periods: Mapping[str, float] | None,
    workers: int,
) -> None:
    for name, deadline in deadlines.items():
        fastest = costs.least(name)
        if fastest > deadline:
            raise InvalidInput(
                f"No accelerator can execute {name} within {1000 * deadline:.2f} ms.",
                accepted=f"At least {1000 * fastest:.2f} ms, or a smaller model.",
            )
    if periods is not None:
        used = costs.utilisation(periods)
        if used > workers:
            raise InvalidInput(
                f"These periods need {used:.1f} workers, and there are {workers}.",
                accepted="Longer periods, smaller models or more accelerators.",
            )
