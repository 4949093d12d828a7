"""Predicted run times beside the user's last two: ``python -m tests.benchmarks.predict``.

The trace is GenTD26 (alibaba/clusterdata, cluster-trace-v2026-GenAI), in time order: the first 60 %
train, the next 10 % calibrate, the last 30 % test. A run becomes known when it has ended.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from carrel.hub.insight.conformal import MISSES, AdaptiveConformal
from carrel.hub.insight.model_fit import train
from carrel.hub.insight.past_runs import PastRun, PlannedRun
from carrel.hub.insight.predictor import RunTimePredictor, replay
from carrel.hub.interfaces.run_times import Basis, RunTimeForecast

from . import report
from .traces import shared

MODULE = "tests.benchmarks.predict"
TRAIN, CALIBRATE = 0.6, 0.1
WINDOW = 500
MANY = 100_000
ANSWERS = 500
_PARAMETERS = ("num_images_per_prompt", "num_inference_steps", "num_lora")
_SIZES = ("prompt_length", "negative_prompt_length")


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """What a run took, and what was predicted of it, in seconds."""

    seconds: float
    typical: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        return self.low <= self.seconds <= self.high

    @property
    def error(self) -> float:
        return abs(self.typical - self.seconds) / self.seconds

    @classmethod
    def of(cls, run: PastRun, forecast: RunTimeForecast) -> PredictedRun:
        return cls(run.seconds, forecast.seconds, forecast.low, forecast.high)


def main() -> int:
    chosen = report.parser(__doc__ or "").parse_args()
    return report.finish(list(_rows(requests())), as_json=chosen.json)


def requests() -> list[PastRun]:
    """Return the requests that succeeded, with a duration and a number of steps, in time order."""
    with gzip.open(shared("alibaba_gentd26_requests.csv.gz"), "rt", encoding="utf-8") as file:
        rows = [
            _run(row)
            for row in csv.DictReader(file)
            if row["predict_status"] == "SUCCEED"
            and float(row["exec_time_seconds"] or 0) > 0
            and row["num_inference_steps"]
        ]
    return sorted(rows, key=lambda run: run.plan.at)


def _run(row: dict[str, str]) -> PastRun:
    at = datetime.fromisoformat(row["gmt_create"]).replace(tzinfo=UTC).timestamp()
    seconds = float(row["exec_time_seconds"])
    plan = PlannedRun(
        at=at,
        owner=row["groupId"],
        program=f"{row['predict_type']} {row['checkpoint_model_version_id']}",
        parameters={name: _number(row[name]) for name in _PARAMETERS},
        sizes={name: _number(row[name]) for name in _SIZES},
    )
    return PastRun(plan=plan, ended_at=at + seconds, seconds=seconds)


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _rows(runs: Sequence[PastRun]) -> Iterator[report.Row]:
    train_end = int(len(runs) * TRAIN)
    test_begin = int(len(runs) * (TRAIN + CALIBRATE))
    test = len(runs) - test_begin
    report.note(f"{len(runs):,} requests, {test:,} of them test")
    model = train(runs[:train_end])
    ours = [
        PredictedRun.of(run, prediction.forecast)
        for run, prediction in replay(RunTimePredictor(model), runs, since=runs[train_end].plan.at)
    ][-test:]
    plain = _last_two(runs, train_end, test_begin, adaptive=False)
    adaptive = _last_two(runs, train_end, test_begin, adaptive=True)
    outside = [100.0 * (not each.inside) for each in ours]
    yield _row("outcomes outside their 90 % interval", _mean(outside), report.AtMost(limit=12), "%")
    inside = 100 - _mean(outside)
    yield _row("outcomes inside their 90 % interval", inside, report.AtMost(limit=92), "%")
    worst = max(_window_means(outside))
    name = f"outcomes outside, worst window of {WINDOW}"
    yield _row(name, worst, report.AtMost(limit=14), "%")
    for name, peer in (("split", plain), ("adaptive", adaptive)):
        yield _row(
            f"median of upper to lower bound, beside {name} conformal round the last two",
            _width(ours),
            report.NotWorseThan(peer=_width(peer), times=0.75),
            "",
        )
    error = 100 * _mean([each.error for each in ours])
    yield _row("mean relative error (1 - MAPE is the rest)", error, report.AtMost(limit=25), "%")
    last_two = 100 * _mean([each.error for each in plain])
    yield _row("the same, beside the last two", error, report.Beside(peer=last_two), "%")
    simple = [
        PredictedRun.of(run, prediction.forecast)
        for run, prediction in replay(RunTimePredictor(), runs, since=runs[train_end].plan.at)
    ][-test:]
    yield _row(
        "the same without the extra, beside the last two",
        100 * _mean([each.error for each in simple]),
        report.Beside(peer=last_two),
        "%",
    )
    yield from _speed(runs)


def _last_two(
    runs: Sequence[PastRun], train_end: int, test_begin: int, *, adaptive: bool
) -> list[PredictedRun]:
    """Predict the mean of the user's last two that had ended; without any, the median of all.

    The interval round it is conformal: its width is that of the calibration part, or adapts as
    Carrel's does.
    """
    unknown = median(run.seconds for run in runs[:train_end])
    conformal = AdaptiveConformal()
    ended: dict[str, list[float]] = {}
    open_runs: list[tuple[float, int, float]] = []
    outcomes: list[PredictedRun] = []
    scores: list[float] = []
    width = 0.0
    for number, run in enumerate(runs):
        for each in sorted(open_runs):
            if each[0] > run.plan.at:
                break
            open_runs.remove(each)
            _, which, typical = each
            known = runs[which]
            ended.setdefault(known.plan.owner, []).append(known.seconds)
            score = abs(math.log(known.seconds / typical))
            if which >= train_end:
                conformal.observe(score, missed=score > conformal.widening)
        newest = ended.get(run.plan.owner, [unknown])[-2:]
        typical = _mean(newest)
        open_runs.append((run.ended_at, number, typical))
        if train_end <= number < test_begin:
            scores.append(abs(math.log(run.seconds / typical)))
        if number == test_begin:
            width = sorted(scores)[math.ceil((1 - MISSES) * (len(scores) + 1)) - 1]
        if number >= test_begin:
            around = math.exp(conformal.widening if adaptive else width)
            outcomes.append(PredictedRun(run.seconds, typical, typical / around, typical * around))
    return outcomes


def _speed(runs: Sequence[PastRun]) -> Iterator[report.Row]:
    """Yield the time of training on many attempts, and of one answer after that."""
    span = runs[-1].plan.at - runs[0].plan.at + 1
    many = [
        replace(
            run,
            plan=replace(run.plan, at=run.plan.at + copy * span),
            ended_at=run.ended_at + copy * span,
        )
        for copy in range(math.ceil(MANY / len(runs)))
        for run in runs
    ][:MANY]
    begun = time.perf_counter()
    model = train(many)
    yield _row(f"training on {MANY:,}", time.perf_counter() - begun, report.AtMost(limit=60), "s")
    predictor = RunTimePredictor(model)
    for run in runs:
        predictor.observe(run)
    answers = []
    for run in runs[-ANSWERS:]:
        begun = time.perf_counter()
        assert predictor.predict(run.plan).forecast.basis in Basis
        answers.append(1000 * (time.perf_counter() - begun))
    yield _row("one answer, median", median(answers), report.AtMost(limit=5), "ms")


def _row(name: str, ours: float, goal: report.Goal, unit: str) -> report.Row:
    command = report.command_line(MODULE)
    return report.Row(name=name, ours=ours, goal=goal, unit=unit, command=command)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _width(outcomes: Sequence[PredictedRun]) -> float:
    return median(each.high / each.low for each in outcomes)


def _window_means(values: Sequence[float]) -> Iterator[float]:
    """Yield the mean of every window, each one place after the one before."""
    total = math.fsum(values[:WINDOW])
    yield total / WINDOW
    for gone, new in zip(values, values[WINDOW:], strict=False):
        total += new - gone
        yield total / WINDOW


if __name__ == "__main__":
    sys.exit(main())
