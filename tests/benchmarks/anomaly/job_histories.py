"""Simulated jobs with a known fault, or none, as the series that the service measures.

A job is a function of time: what its processes and devices use, and what it reports. Noise, phases
of the work and all sizes come from a seed. Readings come every 15 seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from carrel.hub.insight.job_signs.findings import JobHistory, MetricSeries
from carrel.hub.records.leases import SignKind
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries

READING_SECONDS = 15.0
LOOK_SECONDS = 120.0
GIB = 1 << 30
_MINUTE = 60.0


@dataclass(slots=True)
class InjectedJob:
    """One job.

    Attributes:
        seconds: how long it runs.
        begins: when its fault begins; its kind is None for a healthy job.
        use: what is used at a time.
        loss: value of a step at a time; None for a job that reports nothing.
        report_seconds: between two steps.
        prints_until: when it last writes anything.
    """

    name: str
    seconds: float
    use: Callable[[float], UtilizationPoint]
    kind: SignKind | None = None
    begins: float = 0.0
    loss: Callable[[float], float] | None = None
    report_seconds: float = 10.0
    prints_until: float = math.inf
    time_limit: float = 6 * 3600.0
    memory_limit: int = 16 * GIB
    metric: str = "loss"
    more: dict[str, Callable[[float], float]] = field(default_factory=dict)

    def histories(self) -> Iterator[JobHistory]:
        """Yield what is known at each look."""
        series, names = UtilizationSeries(), dict(self.more)
        if self.loss is not None:
            names[self.metric] = self.loss
        steps: list[int] = []
        times: list[float] = []
        values: dict[str, list[float]] = {name: [] for name in names}
        look, before = LOOK_SECONDS, None
        for number in range(1, int(self.seconds / READING_SECONDS)):
            at = number * READING_SECONDS
            series = series.extended(before, at, replace(self.use(at), readings=1))
            before = at
            while names and len(steps) * self.report_seconds < at:
                moment = len(steps) * self.report_seconds
                times.append(moment)
                for name, value in names.items():
                    values[name].append(value(moment))
                steps.append(len(steps))
            if at >= look:
                look += LOOK_SECONDS
                yield JobHistory(
                    age=at,
                    devices=1,
                    seconds_left=self.time_limit - at,
                    memory_limit=self.memory_limit,
                    device_memory=40 * GIB,
                    node_cores=16,
                    last_output=min(at, self.prints_until),
                    use=series,
                    metrics={
                        name: MetricSeries(steps=tuple(steps), values=tuple(of), times=tuple(times))
                        for name, of in values.items()
                    },
                )


@dataclass(frozen=True, slots=True)
class _Training:
    """Use by a training job: epochs with validation, a start that prepares data, and noise."""

    dice: random.Random
    start: float
    percent: float
    jitter: float
    cores: float
    memory: float
    device_memory: float
    epoch: float

    @classmethod
    def drawn(cls, dice: random.Random) -> _Training:
        return cls(
            dice=dice,
            start=dice.uniform(20, 8 * _MINUTE),
            percent=dice.uniform(50, 97),
            jitter=dice.uniform(2, 10),
            cores=dice.uniform(0.4, 4.0),
            memory=dice.uniform(1.5, 8),
            device_memory=dice.uniform(4, 35),
            epoch=dice.uniform(4 * _MINUTE, 20 * _MINUTE),
        )

    def at(self, at: float, **changed: float) -> UtilizationPoint:
        noise = self.dice.gauss
        if at < self.start:
            part = at / self.start
            return UtilizationPoint(
                cores=max(0.1, noise(1.0, 0.1)),
                memory_bytes=int(self.memory * part * GIB) + 200_000_000,
                device_percent=0.0,
                device_bytes=0,
                waiting=abs(noise(0.02, 0.02)),
                throttled=0.0,
            )
        validates = (at % self.epoch) < 0.1 * self.epoch
        percent = self.percent * (0.6 if validates else 1.0) + noise(0, self.jitter)
        values = {
            "cores": max(0.05, noise(self.cores, 0.15 * self.cores)),
            "memory": self.memory + abs(noise(0, 0.02)) * self.memory,
            "percent": min(100.0, max(0.0, percent)),
            "device_memory": self.device_memory * (1.0 if validates else 0.97),
            "waiting": abs(noise(0.05, 0.03)),
            "throttled": 0.0,
            **changed,
        }
        return UtilizationPoint(
            cores=values["cores"],
            memory_bytes=int(values["memory"] * GIB),
            device_percent=values["percent"],
            device_bytes=int(values["device_memory"] * GIB),
            waiting=values["waiting"],
            throttled=values["throttled"],
        )


def _falling(dice: random.Random, seconds: float) -> Callable[[float], float]:
    """Return a loss that falls through the whole run, with noise and small plateaus."""
    start, floor = dice.uniform(2, 8), dice.uniform(0.05, 1.0)
    tau = seconds * dice.uniform(0.25, 0.6)
    noise = dice.uniform(0.01, 0.06) * start

    def value(at: float) -> float:
        return floor + (start - floor) * math.exp(-at / tau) + dice.gauss(0, noise)

    return value


def _basic(dice: random.Random, name: str) -> tuple[InjectedJob, _Training]:
    seconds = dice.uniform(1.6, 4) * 3600
    training = _Training.drawn(dice)
    job = InjectedJob(name, seconds, training.at, loss=_falling(dice, seconds))
    job.report_seconds = dice.choice([5.0, 10.0, 30.0])
    return job, training


def _fault(dice: random.Random, job: InjectedJob, kind: SignKind) -> float:
    """Give a job its fault, and return when it begins."""
    job.kind, job.begins = kind, job.seconds * dice.uniform(0.2, 0.45)
    return job.begins


def loss_becomes_nan(dice: random.Random) -> InjectedJob:
    job, _ = _basic(dice, "loss becomes NaN")
    begins, before = _fault(dice, job, SignKind.LOSS_NOT_FINITE), job.loss
    job.loss = lambda at: math.nan if at >= begins or before is None else before(at)
    return job


def loss_becomes_infinite(dice: random.Random) -> InjectedJob:
    job, _ = _basic(dice, "loss becomes infinite")
    begins, before = _fault(dice, job, SignKind.LOSS_NOT_FINITE), job.loss
    job.metric = "train_loss"
    job.loss = lambda at: math.inf if at >= begins or before is None else before(at)
    return job


def loss_stalls(dice: random.Random) -> InjectedJob:
    job, _ = _basic(dice, "loss stalls")
    begins, before = _fault(dice, job, SignKind.LOSS_STALLED), job.loss
    job.begins = begins = min(begins, 0.3 * job.seconds)
    level = before(begins) if before else 1.0
    noise = dice.uniform(0.01, 0.08) * abs(level)
    job.loss = lambda at: before(at) if before and at < begins else level + dice.gauss(0, noise)
    return job


def loss_diverges(dice: random.Random) -> InjectedJob:
    job, _ = _basic(dice, "loss diverges")
    begins, before = _fault(dice, job, SignKind.LOSS_RISING), job.loss
    scale = dice.uniform(2, 6)
    job.loss = lambda at: (
        (before(at) if before else 0.0)
        + (0.0 if at < begins else scale * min(4.0, (at - begins) / (0.1 * job.seconds)) ** 2)
    )
    return job


def loader_starves(dice: random.Random) -> InjectedJob:
    job, training = _basic(dice, "starved loader")
    begins = _fault(dice, job, SignKind.STARVED_LOADER)
    percent, cores = dice.uniform(8, 22), dice.uniform(0.95, 1.1)

    def use(at: float) -> UtilizationPoint:
        if at < begins:
            return training.at(at)
        return training.at(
            at, percent=max(0.0, dice.gauss(percent, 6)), cores=dice.gauss(cores, 0.03)
        )

    job.use = use
    return job


def memory_leaks(dice: random.Random) -> InjectedJob:
    job, training = _basic(dice, "memory leak")
    begins = _fault(dice, job, SignKind.MEMORY_GROWTH)
    left = job.memory_limit / GIB - training.memory
    rate = left / (dice.uniform(0.8, 1.6) * (job.seconds - begins))

    def use(at: float) -> UtilizationPoint:
        grown = max(0.0, at - begins) * rate
        return training.at(at, memory=training.memory * dice.uniform(1, 1.02) + grown)

    job.use = use
    return job


def memory_leaks_in_steps(dice: random.Random) -> InjectedJob:
    """A leak beside memory that is freed every few minutes: a saw tooth that rises."""
    job, training = _basic(dice, "memory leak under a saw tooth")
    begins = _fault(dice, job, SignKind.MEMORY_GROWTH)
    left = job.memory_limit / GIB - training.memory
    rate = left / (dice.uniform(0.9, 1.5) * (job.seconds - begins))
    period, height = dice.uniform(60, 200), dice.uniform(0.2, 1.0)

    def use(at: float) -> UtilizationPoint:
        tooth = height * (at % period) / period
        return training.at(at, memory=training.memory + tooth + max(0.0, at - begins) * rate)

    job.use = use
    return job


def device_memory_leaks(dice: random.Random) -> InjectedJob:
    job, training = _basic(dice, "device memory leak")
    training = replace(training, device_memory=dice.uniform(4, 15))
    begins = _fault(dice, job, SignKind.DEVICE_MEMORY_GROWTH)
    rate = (40 - training.device_memory) / (dice.uniform(0.9, 1.5) * (job.seconds - begins))

    def use(at: float) -> UtilizationPoint:
        return training.at(at, device_memory=training.device_memory + max(0.0, at - begins) * rate)

    job.use = use
    return job


def devices_never_used(dice: random.Random) -> InjectedJob:
    job, training = _basic(dice, "devices never used")
    job.kind = SignKind.DEVICES_UNUSED
    held = dice.choice([0.0, 0.5])
    job.use = lambda at: training.at(
        at, percent=dice.choice([0.0, 0.0, 0.0, 1.0]), device_memory=held
    )
    return job


def devices_used_once(dice: random.Random) -> InjectedJob:
    """Full use at first: the mean over the whole job stays far from zero."""
    job, training = _basic(dice, "devices used once, then idle")
    begins = _fault(dice, job, SignKind.DEVICES_IDLE)
    job.use = lambda at: training.at(at, **({} if at < begins else {"percent": 0.0, "cores": 0.02}))
    return job


def constant_load(dice: random.Random) -> InjectedJob:
    """Full and even use without any output, as of a miner."""
    job, training = _basic(dice, "constant load without output")
    job.kind, job.loss = SignKind.CONSTANT_LOAD, None
    job.prints_until = dice.uniform(0, 120)
    level, memory = dice.uniform(95, 100), dice.uniform(0.2, 0.6)
    job.use = lambda at: UtilizationPoint(
        cores=abs(dice.gauss(0.05, 0.02)),
        memory_bytes=int(memory * GIB),
        device_percent=min(100.0, dice.gauss(level, 0.5)),
        device_bytes=int(training.device_memory * GIB),
        waiting=0.01,
        throttled=0.0,
    )
    return job


def neighbour_is_noisy(dice: random.Random) -> InjectedJob:
    job, training = _basic(dice, "noisy neighbour")
    begins = _fault(dice, job, SignKind.CPU_CONTENTION)
    part = dice.uniform(0.45, 0.75)

    def use(at: float) -> UtilizationPoint:
        if at < begins:
            return training.at(at)
        cores = training.cores * (1 - part) * dice.uniform(0.9, 1.1)
        waiting = training.cores * part * dice.uniform(0.8, 1.2) + 0.2
        return training.at(at, cores=cores, waiting=waiting, percent=training.percent * 0.7)

    job.use = use
    return job


def limit_throttles(dice: random.Random) -> InjectedJob:
    job, training = _basic(dice, "CPU limit too small")
    job.kind = SignKind.CPU_LIMITED
    part = dice.uniform(0.35, 0.9)
    job.use = lambda at: training.at(at, throttled=max(0.0, dice.gauss(part, 0.08)))
    return job


def training(dice: random.Random) -> InjectedJob:
    return _basic(dice, "training")[0]


def silent_training(dice: random.Random) -> InjectedJob:
    """One long cell that prints nothing; its validation shows in the use of the device."""
    job, _ = _basic(dice, "training without output")
    job.loss, job.prints_until = None, 60.0
    return job


def even_training(dice: random.Random) -> InjectedJob:
    """Even and full use, with a line of progress now and then."""
    job, made = _basic(dice, "even training with progress")
    made = replace(made, percent=98.0, jitter=0.5, epoch=1e9)
    job.use = made.at
    return job


def filling_cache(dice: random.Random) -> InjectedJob:
    job, made = _basic(dice, "cache that fills")
    room, tau = dice.uniform(1, 6), dice.uniform(300, 1500)
    job.use = lambda at: made.at(at, memory=made.memory + room * (1 - math.exp(-at / tau)))
    return job


def saw_tooth(dice: random.Random) -> InjectedJob:
    job, made = _basic(dice, "memory as a saw tooth")
    height, period = dice.uniform(0.5, 4), dice.uniform(60, 1500)
    job.use = lambda at: made.at(at, memory=made.memory + height * (at % period) / period)
    return job


def small_batches(dice: random.Random) -> InjectedJob:
    job, made = _basic(dice, "moderate use of the device")
    made = replace(made, percent=dice.uniform(38, 55), cores=dice.uniform(0.3, 1.1))
    job.use = made.at
    return job


def evaluation_on_cpu(dice: random.Random) -> InjectedJob:
    """Phases of a few minutes on the CPU between epochs on the device."""
    job, made = _basic(dice, "phases on the CPU")
    period, part = dice.uniform(20, 40) * _MINUTE, dice.uniform(0.1, 0.25)
    job.use = lambda at: made.at(
        at, **({"percent": 0.0, "cores": 1.0} if at % period < part * period else {})
    )
    return job


def warm_restarts(dice: random.Random) -> InjectedJob:
    job, _ = _basic(dice, "learning rate with restarts")
    before, period = job.loss, job.seconds * dice.uniform(0.12, 0.2)
    job.loss = lambda at: (
        (before(at) if before else 0.0) * (1 + 0.25 * (at % period < 0.15 * period))
    )
    return job


def skipped_steps(dice: random.Random) -> InjectedJob:
    """Mixed precision: a step now and then overflows, and is skipped."""
    job, _ = _basic(dice, "single steps that overflow")
    before = job.loss
    job.loss = lambda at: math.inf if dice.random() < 0.01 or before is None else before(at)
    return job


def own_threads(dice: random.Random) -> InjectedJob:
    """More threads than cores: the job waits for itself."""
    job, made = _basic(dice, "more threads than cores")
    job.use = lambda at: made.at(
        at, cores=dice.gauss(15, 0.3), waiting=dice.uniform(8, 20), percent=made.percent
    )
    return job


def undefined_metric(dice: random.Random) -> InjectedJob:
    job, _ = _basic(dice, "a score that is undefined")
    job.more["val_auc"] = lambda _: math.nan
    return job


FAULTS: tuple[Callable[[random.Random], InjectedJob], ...] = (
    loss_becomes_nan,
    loss_becomes_infinite,
    loss_diverges,
    loss_stalls,
    loader_starves,
    memory_leaks,
    memory_leaks_in_steps,
    device_memory_leaks,
    devices_never_used,
    devices_used_once,
    constant_load,
    neighbour_is_noisy,
    limit_throttles,
)
HEALTHY: tuple[Callable[[random.Random], InjectedJob], ...] = (
    training,
    silent_training,
    even_training,
    filling_cache,
    saw_tooth,
    small_batches,
    evaluation_on_cpu,
    warm_restarts,
    skipped_steps,
    own_threads,
    undefined_metric,
)
