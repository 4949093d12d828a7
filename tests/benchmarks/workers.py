"""Step times by number of workers, and pipeline splits: ``python -m tests.benchmarks.workers``.

The step times are those of petuum/adaptdl (branch osdi21-artifact; Qiao et al., OSDI 2021): six
models on a cluster of 4-GPU nodes. A shape is a placement, or a number of nodes and replicas. The
model is fitted to two random batch sizes of each shape and predicts the others. The peer is the law
of Amdahl, fitted to the same samples by least squares on relative errors.
"""

from __future__ import annotations

import csv
import io
import math
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from random import Random
from statistics import fmean, median

import numpy as np

from carrel.hub.insight.pipeline_split import Operation, best_split
from carrel.hub.insight.step_samples import StepSample
from carrel.hub.insight.step_time_model import StepTimeModel, fit_step_times

from . import report
from .traces import shared

MODULE = "tests.benchmarks.workers"
MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
PER_SHAPE = 2
DRAWS = 5
PER_NODE = 4
SEEN = 16
"""Largest number of workers in the fit that is extrapolated to more than twice as many."""
LEAST_CHOICES = 3
CHAINS = 200
NOISE = 0.05
"""Relative error of the times that a split is chosen by."""

_ERROR = "median relative error of a step"
_TOTAL_KEPT = "objective below that of the best number of workers, total batch kept"
_BATCH_KEPT = "objective below that of the best number of workers, batch of a worker kept"

Shape = tuple[StepSample, ...]
StepTime = Callable[[int, int, float], float]
"""Seconds of a step by workers, nodes, and batch of one worker."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Two samples of each shape, the others, and what was fitted to the two."""

    fitted_to: Sequence[StepSample]
    held_out: Sequence[StepSample]
    model: StepTimeModel

    @classmethod
    def of(cls, shapes: Sequence[Shape], rng: Random) -> Draw:
        chosen: list[StepSample] = []
        others: list[StepSample] = []
        for shape in shapes:
            picked = set(rng.sample(range(len(shape)), PER_SHAPE))
            for number, sample in enumerate(shape):
                (chosen if number in picked else others).append(sample)
        return cls(chosen, others, fit_step_times(chosen))

    def ours(self, workers: int, nodes: int, batch: float) -> float:
        return self.model.predict(workers, nodes, batch).seconds


def main() -> int:
    chosen = report.parser(__doc__ or "").parse_args()
    return report.finish([*_scaling_rows(), *_split_rows()], as_json=chosen.json)


def shapes_of(model: str) -> list[Shape]:
    """Return the measured steps of one model, by shape."""
    found: dict[tuple[str, ...], list[StepSample]] = {}
    for name in ("placements", "scalability"):
        for row in _table(f"sched/traces/{model}/{name}.csv"):
            placement = row.get("placement", "")
            nodes = len(placement) or int(row["num_nodes"])
            workers = sum(map(int, placement)) or int(row["num_replicas"])
            sample = StepSample(
                workers=workers,
                nodes=nodes,
                batch=float(row["local_bsz"]),
                seconds=float(row["step_time"]),
            )
            found.setdefault((placement, str(nodes), str(workers)), []).append(sample)
    return [tuple(each) for each in found.values()]


def _table(name: str) -> list[dict[str, str]]:
    with tarfile.open(shared("pollux_step_times.tar.gz")) as archive:
        member = next(each for each in archive if each.name.removeprefix("./") == name)
        file = archive.extractfile(member)
        assert file is not None
        return list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")))


def amdahl(samples: Sequence[StepSample]) -> StepTime:
    """Fit a constant, a serial and a parallel part of all work: the peer."""
    rows = np.array([[1.0, each.total_batch, each.batch] for each in samples])
    seconds = np.array([each.seconds for each in samples])
    parts, *_ = np.linalg.lstsq(rows / seconds[:, None], np.ones(len(samples)), rcond=None)
    fixed, serial, parallel = (float(each) for each in parts)
    return lambda workers, _, batch: max(1e-9, fixed + serial * workers * batch + parallel * batch)


def _scaling_rows() -> Iterator[report.Row]:
    beside: dict[str, list[tuple[float, float]]] = {}
    outside: list[float] = []
    for name in MODELS:
        report.note(name)
        shapes = shapes_of(name)
        measured = _MeasuredSteps(shapes)
        draws = [Draw.of(shapes, _repeatable(seed)) for seed in range(DRAWS)]
        peers = [amdahl(draw.fitted_to) for draw in draws]
        errors = fmean(_error(draw.ours, draw.held_out) for draw in draws)
        yield _row(f"{name}: {_ERROR}", errors, report.AtMost(limit=10))
        others = fmean(_error(peer, draw.held_out) for draw, peer in zip(draws, peers, strict=True))
        beside.setdefault(_ERROR, []).append((errors, others))
        for title, total in ((_TOTAL_KEPT, True), (_BATCH_KEPT, False)):
            ours = fmean(_shortfall(measured, draw.ours, total=total) for draw in draws)
            if total:
                yield _row(f"{name}: {title}", ours, report.AtMost(limit=5))
            others = fmean(_shortfall(measured, peer, total=total) for peer in peers)
            beside.setdefault(title, []).append((ours, others))
        outside += [_outside(draw) for draw in draws]
    for title, pairs in beside.items():
        ours, peer = map(fmean, zip(*pairs, strict=True))
        yield _row(f"six models: {title}, beside Amdahl's law", ours, report.Beside(peer=peer))
    title = "steps outside their interval past twice the most workers seen"
    yield _row(title, fmean(outside), report.AtMost(limit=10))


def _error(predicted: StepTime, samples: Sequence[StepSample]) -> float:
    return 100 * median(
        abs(predicted(each.workers, each.nodes, each.batch) / each.seconds - 1) for each in samples
    )


class _MeasuredSteps:
    """Measured steps on the fewest nodes, between batch sizes by interpolation."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        steps: dict[tuple[int, int], dict[float, list[float]]] = {}
        for sample in (sample for shape in shapes for sample in shape):
            if sample.nodes == math.ceil(sample.workers / PER_NODE):
                by_batch = steps.setdefault((sample.workers, sample.nodes), {})
                by_batch.setdefault(sample.batch, []).append(sample.seconds)
        self._steps: Mapping[tuple[int, int], Mapping[float, float]] = {
            shape: {batch: median(by_batch[batch]) for batch in sorted(by_batch)}
            for shape, by_batch in steps.items()
        }
        self.batches = sorted({batch for each in self._steps.values() for batch in each})
        self.totals = sorted({k * batch for (k, _), each in self._steps.items() for batch in each})

    def at(self, work: float, *, total: bool) -> list[tuple[int, int, float, float]]:
        """Return workers, nodes, batch of a worker, and seconds, where this was measured."""
        found = []
        for (workers, nodes), by_batch in self._steps.items():
            batch = work / workers if total else work
            batches = list(by_batch)
            if batches[0] <= batch <= batches[-1]:
                seconds = float(np.interp(batch, batches, list(by_batch.values())))
                found.append((workers, nodes, batch, seconds))
        return found


def _shortfall(measured: _MeasuredSteps, predicted: StepTime, *, total: bool) -> float:
    """Return the mean loss, over amounts of work, by choosing the number of workers by predictions.

    The objective is the square of the speed, per worker; see ``WorkerChoice.efficacy``.
    """
    losses = []
    for work in measured.totals if total else measured.batches:
        choices = measured.at(work, total=total)
        if len(choices) < LEAST_CHOICES:
            continue
        true = [(k * batch / seconds) ** 2 / k for k, _, batch, seconds in choices]
        expected = [(k * batch / predicted(k, n, batch)) ** 2 / k for k, n, batch, _ in choices]
        losses.append(1 - true[expected.index(max(expected))] / max(true))
    return 100 * fmean(losses)


def _outside(draw: Draw) -> float:
    """Return the percentage outside the intervals of a fit to few workers."""
    model = fit_step_times([each for each in draw.fitted_to if each.workers <= SEEN])
    far = [
        each for each in (*draw.fitted_to, *draw.held_out) if each.workers > 2 * model.most_workers
    ]
    forecasts = [model.predict(each.workers, each.nodes, each.batch) for each in far]
    return 100 * fmean(
        not forecast.low <= each.seconds <= forecast.high
        for each, forecast in zip(far, forecasts, strict=True)
    )


def _split_rows() -> Iterator[report.Row]:
    rng = _repeatable(0)
    ours, peer = [], []
    for _ in range(CHAINS):
        true, links, micro_batches = _chain(rng)
        noisy = [
            Operation(
                seconds=each.seconds * rng.lognormvariate(0, NOISE),
                result_bytes=each.result_bytes * rng.lognormvariate(0, NOISE),
            )
            for each in true
        ]
        stages = range(min(len(links) + 1, len(true)))
        best = min(
            simulated_seconds(true, cuts, links, micro_batches)
            for count in stages
            for cuts in combinations(range(1, len(true)), count)
        )
        chosen = best_split(noisy, links, micro_batches).cuts
        ours.append(simulated_seconds(true, chosen, links, micro_batches) / best)
        equal = [len(true) * stage // len(stages) for stage in stages[1:]]
        peer.append(simulated_seconds(true, equal, links, micro_batches) / best)
    title = "split: time above that of the best of all splits"
    for name, value in (("worst", max), ("mean", fmean)):
        above, other = (100 * (value(each) - 1) for each in (ours, peer))
        if name == "worst":
            yield _row(f"{title}, {name} of {CHAINS}", above, report.AtMost(limit=10))
        yield _row(
            f"{title}, {name}, beside equal numbers of operations", above, report.Beside(peer=other)
        )


def _chain(rng: Random) -> tuple[list[Operation], list[float], int]:
    operations = [
        Operation(seconds=rng.lognormvariate(0, 0.7), result_bytes=rng.lognormvariate(-1, 1))
        for _ in range(rng.randint(6, 12))
    ]
    links = [rng.choice((0.5, 1.0, 4.0)) for _ in range(rng.randint(1, 4))]
    return operations, links, rng.choice((2, 4, 8, 16))


def simulated_seconds(
    operations: Sequence[Operation],
    cuts: Sequence[int],
    links: Sequence[float],
    micro_batches: int,
) -> float:
    """Pass the micro-batches through stages and links one by one, each busy with one at a time."""
    bounds = [0, *cuts, len(operations)]
    resources: list[float] = []
    for number, (begin, end) in enumerate(pairwise(bounds)):
        if begin:
            resources.append(operations[begin - 1].result_bytes / links[number - 1])
        resources.append(sum(each.seconds for each in operations[begin:end]))
    free = [0.0] * len(resources)
    for _ in range(micro_batches):
        ready = 0.0
        for at, seconds in enumerate(resources):
            ready = free[at] = max(ready, free[at]) + seconds
    return free[-1]


def _repeatable(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - repeatable, and nothing is secret


def _row(name: str, ours: float, goal: report.Goal) -> report.Row:
    return report.Row(
        name=name, ours=ours, goal=goal, unit="%", command=report.command_line(MODULE)
    )


if __name__ == "__main__":
    sys.exit(main())
