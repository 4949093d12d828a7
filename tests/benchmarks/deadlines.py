"""``execution.schedule`` beside one queue and beside a session of its own for each model.

Four convolutional networks in ONNX Runtime, with periods of 8, 12, 20 and 33 ms; each request is
due when the next one of its model comes. The networks are made as large as this machine needs for
the stated times on one core. Workers are processor cores, and are called CPU workers.

* regular: missed deadlines and the slowest hundredth of the tightest model, for ``schedule`` on two
  CPU workers, one queue in order of arrival whose sessions use all cores, and a thread with a
  session of all cores for each model.
* burst: three times the requests, on one CPU worker, of smaller networks, which keep it busy for
  less than half of the time without a burst; without and with a second process with a CPU worker of
  its own, to which work is offloaded.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from carrel.extensions import execution
from carrel.extensions.execution.deadlines import models as loading

from . import report
from .report import AtMost, FasterThan, Row

MILLISECONDS = {8: 1.2, 12: 2.0, 20: 3.0, 33: 5.0}
"""By period in milliseconds, how long a network takes on one core."""
PERIODS = {f"every {period} ms": period / 1000 for period in MILLISECONDS}
TIGHTEST = min(PERIODS, key=PERIODS.__getitem__)
SECONDS, ROUNDS, BURST = 10.0, 3, 3
LOAD_BEFORE_A_BURST = 0.7
CHANNELS, SIDE = 16, 32
INPUTS = np.zeros((1, CHANNELS, SIDE, SIDE), "float32")
Submit = Callable[[str], "Future[Any]"]


def network(layers: int, path: Path) -> Path:
    """Write a network of so many convolutions."""
    random = np.random.default_rng(layers)
    weights = random.normal(0, 0.08, (CHANNELS, CHANNELS, 3, 3)).astype("float32")
    nodes = [
        helper.make_node("Conv", [f"x{each}", "weights"], [f"x{each + 1}"], pads=[1, 1, 1, 1])
        for each in range(layers)
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(INPUTS.shape))
        for name in ("x0", f"x{layers}")
    ]
    held = [numpy_helper.from_array(weights, "weights")]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def milliseconds(path: Path) -> float:
    execute = loading.load(path, loading.CPU, 1)
    times = []
    for _ in range(30):
        begun = time.process_time()
        execute(INPUTS)
        times.append(1000 * (time.process_time() - begun))
    return sorted(times)[len(times) // 2]


def networks(folder: Path, load: float) -> dict[str, Path]:
    """Write the networks. Args: load: times the milliseconds of each."""
    folder.mkdir()
    layer = milliseconds(network(40, folder / "40.onnx")) / 40 / load
    return {
        name: network(
            max(1, round(MILLISECONDS[round(1000 * period)] / layer)), folder / f"{name}.onnx"
        )
        for name, period in PERIODS.items()
    }


@dataclass(slots=True)
class Answers:
    """Milliseconds from submission to end by model; infinite where it was not executed."""

    times: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PERIODS})

    @property
    def missed(self) -> float:
        """Percent of all requests."""
        late = sum(
            each > 1000 * PERIODS[name] for name, times in self.times.items() for each in times
        )
        return 100 * late / sum(map(len, self.times.values()))

    def slowest_hundredth(self, model: str) -> float:
        times = sorted(self.times[model])
        return times[math.ceil(0.99 * len(times)) - 1]


def drive(submit: Submit, seconds: float, burst: int = 1) -> Answers:
    """Submit each model once a period, or ``burst`` times; a client does not wait for answers."""
    due = sorted(
        (number * period, name)
        for name, period in PERIODS.items()
        for number in range(int(seconds / period))
        for _ in range(burst)
    )
    answers, left = Answers(), threading.Semaphore(0)
    begun = time.perf_counter()

    def note(name: str, asked: float, future: Future[Any]) -> None:
        took = math.inf if future.exception() else 1000 * (time.perf_counter() - asked)
        answers.times[name].append(took)
        left.release()

    for at, name in due:
        if (wait := begun + at - time.perf_counter()) > 0:
            time.sleep(wait)
        asked = begun + at
        submit(name).add_done_callback(lambda done, it=(name, asked): note(*it, done))
    for _ in due:
        left.acquire()
    return answers


@contextmanager
def in_threads(paths: Mapping[str, Path], queues: Mapping[str, int]) -> Iterator[Submit]:
    """Queues in order of arrival, each with a thread; sessions use all cores."""
    cores = len(os.sched_getaffinity(0))
    execute = {name: loading.load(path, loading.CPU, cores) for name, path in paths.items()}
    waiting: dict[int, queue.Queue[Any]] = {number: queue.Queue() for number in queues.values()}

    def work(mine: queue.Queue[Any]) -> None:
        while (item := mine.get()) is not None:
            name, future = item
            future.set_result(execute[name](INPUTS))

    threads = [threading.Thread(target=work, args=(each,)) for each in waiting.values()]
    for thread in threads:
        thread.start()

    def submit(name: str) -> Future[Any]:
        future: Future[Any] = Future()
        waiting[queues[name]].put((name, future))
        return future

    try:
        yield submit
    finally:
        for each in waiting.values():
            each.put(None)
        for thread in threads:
            thread.join()


@contextmanager
def scheduled(paths: Mapping[str, Path], workers: int, **options: Any) -> Iterator[Submit]:
    with execution.schedule(
        paths, ["cpu"] * workers, PERIODS, samples=dict.fromkeys(PERIODS, INPUTS), **options
    ) as scheduler:
        yield lambda name: scheduler.submit(name, INPUTS)
        report.note(str(execution.explain(scheduler)))


_elsewhere: dict[str, Any] = {}


def _load_elsewhere(paths: Mapping[str, Path]) -> None:
    _elsewhere.update({name: loading.load(path, loading.CPU, 1) for name, path in paths.items()})


def _execute_elsewhere(name: str, inputs: Any) -> Any:
    return _elsewhere[name](inputs)


@contextmanager
def another_process(paths: Mapping[str, Path]) -> Iterator[Callable[[str, Any], Any]]:
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawning, _load_elsewhere, (dict(paths),)) as pool:
        yield lambda *given: pool.submit(_execute_elsewhere, *given).result()


@dataclass(slots=True)
class FoundTimes:
    missed: dict[str, list[float]] = field(default_factory=dict)
    slowest: dict[str, list[float]] = field(default_factory=dict)

    def add(self, way: str, answers: Answers) -> None:
        self.missed.setdefault(way, []).append(answers.missed)
        self.slowest.setdefault(way, []).append(answers.slowest_hundredth(TIGHTEST))
        report.note(
            f"{way}: {answers.missed:.2f} % missed, {self.slowest[way][-1]:.2f} ms for the slowest "
            "hundredth of the tightest"
        )


OURS, QUEUE, APART = "schedule", "one queue", "a session each"
ALONE, OFFLOADED = "burst", "burst, with offload"


def measure(folder: Path, seconds: float, rounds: int) -> FoundTimes:
    found = FoundTimes()
    paths = networks(folder / "regular", 1.0)
    smaller = networks(folder / "burst", LOAD_BEFORE_A_BURST)
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        OURS: (lambda: scheduled(paths, 2), 1),
        QUEUE: (lambda: in_threads(paths, dict.fromkeys(PERIODS, 0)), 1),
        APART: (lambda: in_threads(paths, {name: at for at, name in enumerate(PERIODS)}), 1),
        ALONE: (lambda: scheduled(smaller, 1), BURST),
    }
    for _ in range(rounds):
        for way, (make, burst) in ways.items():
            with make() as submit:
                found.add(way, drive(submit, seconds, burst))
        with ExitStack() as stack:
            offload = stack.enter_context(another_process(smaller))
            submit = stack.enter_context(scheduled(smaller, 1, offload=offload))
            found.add(OFFLOADED, drive(submit, seconds, BURST))
    return found


def rows(found: FoundTimes, command: str) -> list[Row]:
    missed = {way: report.middle(each) for way, each in found.missed.items()}
    slowest = {way: report.middle(each) for way, each in found.slowest.items()}

    def row(name: str, ours: float | None, goal: report.Goal, unit: str) -> Row:
        return Row(name=name, ours=ours, goal=goal, unit=unit, command=command)

    return [
        row("missed deadlines on two CPU workers", missed[OURS], AtMost(limit=0), "%"),
        row("the same beside one queue", missed[OURS], report.Beside(peer=missed[QUEUE]), "%"),
        row(
            "slowest hundredth of the tightest model, beside a session each",
            slowest[OURS],
            FasterThan(peer=slowest[APART], times=1 / 0.6),
            "ms",
        ),
        row(
            "missed deadlines in a burst with offload, beside none",
            missed[OFFLOADED],
            FasterThan(peer=missed[ALONE], times=5),
            "%",
        ),
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("Deadlines of four models beside one queue and a session each.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each way (10)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of all ways in turns (3)")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="carrel-deadlines-") as folder:
        found = measure(Path(folder), options.seconds, options.rounds)
    command = report.command_line("tests.benchmarks.deadlines", *words)
    return report.finish(rows(found, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
