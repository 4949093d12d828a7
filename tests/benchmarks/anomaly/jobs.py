"""Signs of odd jobs beside fixed thresholds and an isolation forest.

Each kind of fault and each kind of healthy job is simulated with the same seeds, and looked at
every two minutes. A verdict on a faulty job is right if the kind is, and comes after the fault
began; every other one is a false alarm. The peers only say that a job is odd. The forest learns
from healthy jobs with other seeds; the thresholds of all were chosen on other seeds too.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from carrel.hub.insight.job_signs.detection import job_signs
from carrel.hub.insight.job_signs.findings import JobHistory

from .. import report
from . import job_histories
from .job_histories import InjectedJob

MODULE = "tests.benchmarks.anomaly"
_DOUBT = 0.05
TRAIN_SEEDS = range(5_000, 5_010)
_WINDOW = 600.0
Peer = Callable[[Sequence[JobHistory]], list[bool]]
"""Says of each look at a job whether it is odd."""


@dataclass(slots=True)
class Verdicts:
    """Verdicts on jobs by one method."""

    right: int = 0
    missed: int = 0
    false: int = 0
    delays: list[float] = field(default_factory=list)
    by_kind: dict[str, list[int]] = field(default_factory=dict)

    @property
    def imprecision(self) -> float:
        """Most percent of the alarms that are false, at a confidence of 95 %."""
        return 100 * upper_bound(self.false, self.right + self.false)

    @property
    def missing(self) -> float:
        """Most percent of the faults that are not found, at a confidence of 95 %."""
        return 100 * upper_bound(self.missed, self.right + self.missed)

    def add(self, job: InjectedJob, found_at: float | None, others: int) -> None:
        """Count the verdict on one job.

        Args:
            found_at: when its fault was found; None if not.
            others: kinds of signs that were found without being there.
        """
        self.false += others
        kind = self.by_kind.setdefault(job.name, [0, 0, 0])
        kind[2] += others
        if job.kind is None:
            return
        kind[0 if found_at is not None else 1] += 1
        if found_at is None:
            self.missed += 1
        else:
            self.right += 1
            self.delays.append(found_at - job.begins)


def upper_bound(count: int, of: int) -> float:
    """Return the upper end of the exact one-sided interval of a share (Clopper and Pearson)."""
    if count >= of:
        return 1.0
    low, high = count / of, 1.0
    while high - low > 1e-6:
        share = (low + high) / 2
        below = sum(
            math.comb(of, each) * share**each * (1 - share) ** (of - each)
            for each in range(count + 1)
        )
        low, high = (share, high) if below > _DOUBT else (low, share)
    return high


def simulated(seeds: Sequence[int], *, healthy_only: bool = False) -> Iterator[InjectedJob]:
    """Yield a job of each kind for each seed."""
    kinds = job_histories.HEALTHY if healthy_only else job_histories.FAULTS + job_histories.HEALTHY
    for kind in kinds:
        for seed in seeds:
            yield kind(random.Random(f"{kind.__name__}/{seed}"))  # noqa: S311  # no secret


def thresholds(histories: Sequence[JobHistory]) -> list[bool]:
    return [_above_thresholds(history) for history in histories]


def _above_thresholds(history: JobHistory) -> bool:
    """Apply the rules of thumb of dashboards: means over the whole job, and last values."""
    points = history.use.points
    percents = [p.device_percent for p in points if p.device_percent is not None]
    cores = [p.cores for p in points if p.cores is not None]
    memory = [p.memory_bytes for p in points if p.memory_bytes is not None]
    waiting = [p.waiting for p in points if p.waiting is not None]
    if history.age < _WINDOW or not percents or not cores or not memory:
        return False
    mean = sum(percents) / len(percents)
    losses = [series.values[-1] for series in history.metrics.values() if series.values]
    return (
        mean < 10
        or mean > 95
        or (mean < 30 and sum(cores) / len(cores) > 0.8)
        or memory[-1] > 0.9 * history.memory_limit
        or any(not math.isfinite(value) for value in losses)
        or (bool(waiting) and sum(waiting) / len(waiting) > 1.0)
    )


def features(history: JobHistory) -> list[float] | None:
    """Return the values of the last ten minutes that the isolation forest gets."""
    first = int(max(0.0, history.age - _WINDOW) // history.use.seconds)
    points = [point for point in history.use.points[first:] if point.readings]
    if history.age < _WINDOW or len(points) < 2:
        return None
    found: list[float] = []
    for values in (
        [p.cores or 0.0 for p in points],
        [(p.memory_bytes or 0) / job_histories.GIB for p in points],
        [p.device_percent or 0.0 for p in points],
        [(p.device_bytes or 0) / job_histories.GIB for p in points],
        [p.waiting or 0.0 for p in points],
        [p.throttled or 0.0 for p in points],
    ):
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        found += [mean, spread, values[-1] - values[0]]
    losses = next((series.values[-60:] for series in history.metrics.values()), ())
    finite = [value for value in losses if math.isfinite(value)]
    found += [
        len(losses) - len(finite),
        finite[-1] - finite[0] if finite else 0.0,
        min(3600.0, history.age - (history.last_output or 0.0)),
    ]
    return found


def forest(seeds: Sequence[int], contamination: float = 0.1) -> Peer:
    """Return an isolation forest that has learned healthy jobs."""
    from sklearn.ensemble import IsolationForest  # noqa: PLC0415  # of an extra

    rows = [
        row
        for job in simulated(seeds, healthy_only=True)
        for history in list(job.histories())[::3]
        if (row := features(history)) is not None
    ]
    made = IsolationForest(n_estimators=100, contamination=contamination, random_state=0, n_jobs=1)
    made.fit(rows)

    def odd(histories: Sequence[JobHistory]) -> list[bool]:
        known = [(number, row) for number, each in enumerate(histories) if (row := features(each))]
        found = [False] * len(histories)
        if known:
            for (number, _), value in zip(
                known, made.predict([row for _, row in known]), strict=True
            ):
                found[number] = bool(value < 0)
        return found

    return odd


def judge(job: InjectedJob, ours: Verdicts, peers: Mapping[str, tuple[Peer, Verdicts]]) -> float:
    """Look at a job until its end; return the seconds of CPU that our looks took, on average."""
    found_at, others, spent = None, set(), 0.0
    histories = list(job.histories())
    for history in histories:
        began = time.process_time()
        signs = job_signs(history)
        spent += time.process_time() - began
        for sign in signs:
            if sign.kind is not job.kind or history.age < job.begins:
                others.add(sign.kind)
            elif found_at is None:
                found_at = history.age
    ours.add(job, found_at, len(others))
    for odd, verdicts in peers.values():
        _judge_peer(job, histories[::3], odd, verdicts)
    return spent / max(1, len(histories))


def _judge_peer(
    job: InjectedJob, histories: Sequence[JobHistory], odd: Peer, verdicts: Verdicts
) -> None:
    """Count an alarm where a peer finds a job odd in two looks in a row."""
    found = odd(histories)
    at = [now.age for now, *both in zip(histories[1:], found, found[1:], strict=False) if all(both)]
    early = any(job.kind is None or age < job.begins for age in at)
    verdicts.add(job, next((age for age in at if age >= job.begins), None), int(early))


def rows(seeds: int, first: int) -> list[report.Row]:
    """Return the figures of all methods with seeds from ``first`` on."""
    chosen = range(first, first + seeds)
    ours = Verdicts()
    peers = {
        "fixed thresholds": (thresholds, Verdicts()),
        "isolation forest": (forest(TRAIN_SEEDS), Verdicts()),
    }
    spent = [judge(job, ours, peers) for job in simulated(chosen)]
    for name, (right, missed, false) in ours.by_kind.items():
        report.note(f"{name}: {right} found, {missed} missed, {false} false alarms")
    for name, verdicts in {
        "ours": ours,
        **{name: each for name, (_, each) in peers.items()},
    }.items():
        report.note(
            f"{name}: {verdicts.right} of {verdicts.right + verdicts.missed} faults found, "
            f"{verdicts.false} false alarms"
        )
    command = report.command_line(MODULE, "jobs", "--seeds", str(seeds), "--first", str(first))

    def row(name: str, value: float | None, goal: report.Goal, unit: str) -> report.Row:
        return report.Row(name=f"jobs: {name}", ours=value, goal=goal, unit=unit, command=command)

    found = [
        row("false alarms, 95 % bound", ours.imprecision, report.AtMost(limit=5), "%"),
        row("faults missed, 95 % bound", ours.missing, report.AtMost(limit=5), "%"),
        row("median time to find a fault", _minutes(ours.delays), report.AtMost(limit=30), "min"),
        row("one look", 1e6 * median(spent), report.AtMost(limit=30_000), "µs"),
    ]
    for name, (_, verdicts) in peers.items():
        for what, own, theirs in (
            ("false alarms", ours.imprecision, verdicts.imprecision),
            ("faults missed", ours.missing, verdicts.missing),
        ):
            found.append(row(f"{what}, beside {name}", own, report.Beside(peer=theirs), "%"))
    return found


def _minutes(seconds: Sequence[float]) -> float | None:
    return median(seconds) / 60 if seconds else None
