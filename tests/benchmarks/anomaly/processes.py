"""Faults of real processes: slow devices, busy neighbours, CPU limits and leaks.

A program repeats the same work. It is stopped by signals for a part of the time, as on a slow
device; it shares its core with four others, with equal and with the lowest priority; or a CPU limit
of its control group holds it. Only the first is a fault of the device. What is read of a run is
what the service reads. Undisturbed runs have real-time priority, so that other work on this machine
is no neighbour.

Leaks are real, and the clock of their histories runs a hundred times faster than theirs.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from carrel.hub.insight.health.contention import contention
from carrel.hub.insight.health.run_pace import RunPace
from carrel.hub.insight.job_signs.detection import job_signs
from carrel.hub.insight.job_signs.findings import JobHistory
from carrel.hub.records.leases import SignKind
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries
from carrel.spawners.devices.activity import ProcessCpuMeter, RunDelayMeter

from .. import report
from .jobs import upper_bound

MODULE: Final = "tests.benchmarks.anomaly"
RUNS: Final = 8
ELSEWHERE: Final = 6
NEIGHBOURS: Final = 4
WORK: Final = 200_000
CPU_GROUPS: Final = Path("/sys/fs/cgroup/cpu")
PERIOD_US: Final = 20_000
SPEED: Final = 100.0
"""Seconds in the history of a leak for each real one."""
LEAK_SECONDS: Final = 18.0
LIMIT: Final = 220 << 20
_WORKER: Final = """
import sys, time
for line in sys.stdin:
    began, value = time.perf_counter(), 1
    for number in range(int(line)):
        value = value * 1103515245 + 12345 & 0x7FFFFFFF
    print(time.perf_counter() - began, flush=True)
"""
_BURNER: Final = "while True: pass"
_LEAK: Final = """
import sys, time
step, most, kept = int(sys.argv[1]), int(sys.argv[2]), []
while True:
    kept.append(bytearray(b"x") * step)
    if most and len(kept) * step >= most:
        kept.clear()
    time.sleep(0.05)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run, what it waited for, and the features that the forest gets."""

    seconds: float
    waited_for: str
    features: tuple[float, float]


@dataclass(slots=True)
class Worker:
    """A real program that repeats its work on demand, on one core."""

    core: int
    process: subprocess.Popen[str]
    _cpu: ProcessCpuMeter = field(default_factory=ProcessCpuMeter)
    _delays: RunDelayMeter = field(default_factory=RunDelayMeter)

    def run(self, group: Path | None = None) -> MeasuredRun:
        """Do the work once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        members = [psutil.Process(self.process.pid)]

        def read() -> tuple[float, float, float]:
            waited = self._delays.read("run", members) or 0.0
            return self._cpu.read("run", members, None), waited, throttled_seconds(group)

        before, began = read(), time.perf_counter()
        self.process.stdin.write(f"{WORK}\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        passed, after = time.perf_counter() - began, read()
        cores, waiting, throttled = (
            (last - first) / passed for first, last in zip(before, after, strict=True)
        )
        point = UtilizationPoint(cores=cores, waiting=waiting, throttled=throttled, readings=1)
        return MeasuredRun(
            seconds=seconds,
            waited_for=contention(UtilizationSeries(points=(point,)), None),
            features=(waiting / max(1e-9, waiting + cores), throttled),
        )


@contextmanager
def worker(core: int) -> Iterator[Worker]:
    """Start the program with real-time priority on a core."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.sched_setaffinity(process.pid, {core})
        undisturbed(process.pid)
        try:
            yield Worker(core, process)
        finally:
            process.kill()


def undisturbed(pid: int) -> None:
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def ordinary(pid: int) -> None:
    os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


# -- disturbances -----------------------------------------------------------------------------

Disturbance = Callable[[Worker, random.Random], contextlib.AbstractContextManager[Path | None]]
"""Disturbs the runs of a worker; yields the control group that it is in, if any."""


@contextmanager
def nothing(worker: Worker, rng: random.Random) -> Iterator[Path | None]:
    yield None


@contextmanager
def slow_device(worker: Worker, rng: random.Random) -> Iterator[Path | None]:
    """Stop the program for 30 to 50 % of the time."""
    part, over, pid = rng.uniform(0.3, 0.5), threading.Event(), worker.process.pid

    def toggle() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.01 * part)
            os.kill(pid, signal.SIGCONT)
            over.wait(0.01 * (1 - part))

    thread = threading.Thread(target=toggle)
    thread.start()
    try:
        yield None
    finally:
        over.set()
        thread.join()


@contextmanager
def neighbours(worker: Worker, rng: random.Random) -> Iterator[Path | None]:
    """Let busy programs share the core."""
    burners = [subprocess.Popen([sys.executable, "-S", "-c", _BURNER]) for _ in range(NEIGHBOURS)]
    try:
        for burner in burners:
            os.sched_setaffinity(burner.pid, {worker.core})
        ordinary(worker.process.pid)
        yield None
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@contextmanager
def lowest_priority(worker: Worker, rng: random.Random) -> Iterator[Path | None]:
    with neighbours(worker, rng) as group:
        os.setpriority(os.PRIO_PROCESS, worker.process.pid, rng.randint(1, 5))
        yield group


@contextmanager
def cpu_limit(worker: Worker, rng: random.Random) -> Iterator[Path | None]:
    """Hold the program at 40 to 60 % of a core."""
    group = Path(tempfile.mkdtemp(prefix="carrel-benchmark-", dir=CPU_GROUPS))
    pid = worker.process.pid
    ordinary(pid)  # a group with a limit has no real-time budget
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(int(PERIOD_US * rng.uniform(0.4, 0.6))))
        (group / "cgroup.procs").write_text(str(pid))
        os.setpriority(os.PRIO_PROCESS, pid, -20)
        yield group
    finally:
        (CPU_GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def throttled_seconds(group: Path | None) -> float:
    if group is None:
        return 0.0
    stat = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(stat["throttled_time"]) / 1e9


KINDS: Final[Mapping[str, tuple[Disturbance, bool, bool]]] = {
    "stopped 30 to 50 % of the time": (slow_device, True, False),
    "four busy neighbours": (neighbours, False, True),
    "neighbours of higher priority": (lowest_priority, False, True),
    "CPU limit": (cpu_limit, False, True),
    "undisturbed": (nothing, False, False),
}
"""How runs are disturbed, whether the device is to be doubted, and whether the node is named."""


# -- verdicts ---------------------------------------------------------------------------------


@dataclass(slots=True)
class ProcessVerdicts:
    """What a method found."""

    right: int = 0
    missed: int = 0
    false: int = 0
    cleared: int = 0

    @property
    def missing(self) -> float:
        """Most slow devices that are not found, as a share, at a confidence of 95 %."""
        return upper_bound(self.missed, self.missed + self.right)

    @property
    def wrong(self) -> float:
        """Most sound devices that are doubted, as a share, at a confidence of 95 %."""
        return upper_bound(self.false, self.false + self.cleared)

    def add(self, *, sick: bool, accused: bool) -> None:
        self.right += sick and accused
        self.missed += sick and not accused
        self.false += accused and not sick
        self.cleared += not sick and not accused


def ours(elsewhere: Sequence[MeasuredRun], here: Sequence[MeasuredRun], usual: float) -> bool:
    """Whether the runs of three users make a device due for a validation."""
    pace = RunPace()
    for number, run in enumerate(elsewhere):
        pace.add("B", f"u{number % 3}", run.seconds, usual, run.waited_for)
    found = [
        pace.add("A", f"u{number % 3}", run.seconds, usual, run.waited_for)
        for number, run in enumerate(here)
    ]
    return any(found)


def three_in_a_row(odd: Sequence[bool]) -> bool:
    return any(all(odd[number : number + 3]) for number in range(len(odd) - 2))


def thresholds(elsewhere: Sequence[MeasuredRun], here: Sequence[MeasuredRun], usual: float) -> bool:
    return three_in_a_row([run.seconds > 1.3 * usual for run in here])


def forest(healthy: Sequence[tuple[MeasuredRun, float]]) -> Callable[..., bool]:
    """Return an isolation forest that has learned undisturbed runs."""
    from sklearn.ensemble import IsolationForest  # noqa: PLC0415  # of an extra

    def row(run: MeasuredRun, usual: float) -> list[float]:
        return [math.log(run.seconds / usual), *run.features]

    made = IsolationForest(n_estimators=100, contamination=0.05, random_state=0, n_jobs=1)
    made.fit([row(run, usual) for run, usual in healthy])

    def judge(elsewhere: Sequence[MeasuredRun], here: Sequence[MeasuredRun], usual: float) -> bool:
        return three_in_a_row([value < 0 for value in made.predict([row(r, usual) for r in here])])

    return judge


def runs(core: int, kind: str, seed: int) -> tuple[list[MeasuredRun], list[MeasuredRun], float]:
    """Return undisturbed runs, disturbed ones, and what a run usually takes."""
    disturb = KINDS[kind][0]
    rng = random.Random(f"{kind}/{seed}")  # noqa: S311  # no secret
    with worker(core) as program:
        usual = median(program.run().seconds for _ in range(5))
        elsewhere = [program.run() for _ in range(ELSEWHERE)]
        with disturb(program, rng) as group:
            here = [program.run(group) for _ in range(RUNS)]
    return elsewhere, here, usual


def rows(seeds: int, first: int) -> list[report.Row]:
    """Return the figures of all methods with seeds from ``first`` on."""
    core = max(os.sched_getaffinity(0))
    training = []
    for seed in range(first - 6, first):
        before, here, usual = runs(core, "undisturbed", seed)
        training += [(run, usual) for run in (*before, *here)]
    methods = {"ours": ours, "fixed thresholds": thresholds, "isolation forest": forest(training)}
    verdicts = {name: ProcessVerdicts() for name in methods}
    named = unnamed = 0
    for kind, (_, sick, busy) in KINDS.items():
        accused = dict.fromkeys(methods, 0)
        told = 0
        for seed in range(first, first + seeds):
            elsewhere, here, usual = runs(core, kind, seed)
            for name, judge in methods.items():
                found = judge(elsewhere, here, usual)
                accused[name] += found
                verdicts[name].add(sick=sick, accused=found)
            told += 2 * sum(bool(run.waited_for) for run in here) > RUNS
        if busy:
            named, unnamed = named + told, unnamed + seeds - told
        report.note(f"{kind}: {seeds} devices, doubted: {accused}, node named: {told}")
    leaks, early, steady = leaking(seeds, first)
    report.note(f"leaks: {leaks} of {seeds} found, thresholds {early}; healthy: {steady} alarms")
    command = report.command_line(MODULE, "processes", "--seeds", str(seeds), "--first", str(first))
    return _figures(command, verdicts, (named, unnamed), (leaks, steady), seeds)


def _figures(
    command: str,
    verdicts: Mapping[str, ProcessVerdicts],
    named: tuple[int, int],
    leaks: tuple[int, int],
    seeds: int,
) -> list[report.Row]:
    """Return the rows, with the upper ends of one-sided 95 % intervals.

    Args:
        named: busy nodes that were named as the cause, and those that were not.
        leaks: those that were found, and steady programs that were called leaks.
        seeds: number of leaks, and of steady programs.
    """

    def row(name: str, share: float, goal: report.Goal) -> report.Row:
        return report.Row(
            name=f"processes: {name}", ours=100 * share, goal=goal, unit="%", command=command
        )

    own, five = verdicts["ours"], report.AtMost(limit=5)
    found = own.right + named[0] + leaks[0]
    missed = own.missed + named[1] + seeds - leaks[0]
    false = own.false + leaks[1]
    rows = [
        row("faults missed, 95 % bound", upper_bound(missed, missed + found), five),
        row("false alarms, 95 % bound", upper_bound(false, false + found), five),
    ]
    for name, each in verdicts.items():
        if name != "ours":
            rows += [
                row(
                    f"slow devices missed, beside {name}",
                    own.missing,
                    report.Beside(peer=100 * each.missing),
                ),
                row(
                    f"sound devices doubted, beside {name}",
                    own.wrong,
                    report.Beside(peer=100 * each.wrong),
                ),
            ]
    return rows


# -- leaks ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Growing:
    """A real program whose memory grows, or grows and falls, and its history."""

    process: subprocess.Popen[bytes]
    leaks: bool
    use: UtilizationSeries = field(default_factory=UtilizationSeries)
    told: bool = False
    beyond: bool = False


def leaking(seeds: int, first: int) -> tuple[int, int, int]:
    """Return how many leaks were found, by us and by a threshold, and alarms on healthy ones."""
    programs = []
    for seed in range(first, first + seeds):
        rng = random.Random(f"leak/{seed}")  # noqa: S311  # no secret
        for leaks in (True, False):
            step = rng.randint(600_000, 700_000)
            most = 0 if leaks else rng.randint(10 << 20, 40 << 20)
            arguments = [sys.executable, "-S", "-c", _LEAK, str(step), str(most)]
            programs.append(_Growing(subprocess.Popen(arguments), leaks))
    try:
        began = last = time.monotonic()
        judged = 0.0
        while (real := time.monotonic() - began) < LEAK_SECONDS:
            now = SPEED * real
            for each in programs:
                size = psutil.Process(each.process.pid).memory_info().rss
                point = UtilizationPoint(memory_bytes=size, cores=0.1, readings=1)
                each.use = each.use.extended(SPEED * (last - began), now, point)
                each.beyond |= size > 0.9 * LIMIT
            last = began + real
            if now - judged >= 120:
                judged = now
                for each in programs:
                    signs = job_signs(_history(each, now))
                    each.told |= any(sign.kind is SignKind.MEMORY_GROWTH for sign in signs)
            time.sleep(0.04)
    finally:
        for each in programs:
            each.process.kill()
            each.process.wait()
    return (
        sum(each.told for each in programs if each.leaks),
        sum(each.beyond for each in programs if each.leaks),
        sum(each.told for each in programs if not each.leaks),
    )


def _history(each: _Growing, now: float) -> JobHistory:
    return JobHistory(age=now, seconds_left=3600.0, memory_limit=LIMIT, use=each.use)
