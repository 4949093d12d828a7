"""``carrel.execution.Shelf`` beside the same pipelines from the same pickles in one process.

onnxruntime and skl2onnx must be installed (``pip install 'carrel[shelf]'``). Times are processor
time of one thread, which other work on the machine changes less than the time of a clock; the ways
are measured in turns. Memory is that of a process for each way, less what it takes after it has
executed, and converted to ONNX, a small pipeline. The floor is the coefficients and one vectoriser
a featuriser. A process a pipeline is measured in a few processes that run together, by their
proportional set size (PSS: shared pages count in parts), times the number of pipelines.
"""

from __future__ import annotations

import json
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from carrel.extensions import execution

from . import report
from .report import FasterThan, Row

FEATURISERS = 10
PIPELINES = 250
PROCESSES = 2  # that fit them
MEASURED_PROCESSES = 5  # of those with one pipeline
DOCUMENTS = 200
REQUESTS = 8  # a pipeline and way
FEATURES = 10_000
CLASSES = 3
_MIB = 1 << 20


def texts(draw: random.Random, count: int) -> list[str]:
    """Return documents of 10 to 40 words, the most common word as often as in English."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(8_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    return [" ".join(draw.choices(words, weights, k=draw.randint(10, 40))) for _ in range(count)]


def write_pickles(folder: Path, draw: random.Random) -> list[str]:
    """Fit the pipelines and write each into a file; return documents that they have not seen.

    As with submissions, pipelines whose words are equal are fitted in different processes.
    """
    documents = texts(draw, 2_000)
    for part in range(PROCESSES):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            process.submit(write_part, folder, documents[:-DOCUMENTS], part).result()
    return documents[-DOCUMENTS:]


def write_part(folder: Path, documents: list[str], part: int) -> None:
    draw = random.Random(part)  # noqa: S311
    for number in range(FEATURISERS):
        words = TfidfVectorizer(
            max_features=FEATURES // 2 + number, norm="l2" if number % 2 else None
        ).fit(documents)
        matrix = words.transform(documents[:200])
        for head in range(part, PIPELINES // FEATURISERS, PROCESSES):
            labels = [f"class {draw.randrange(CLASSES)}" for _ in range(200)]
            classifier = LogisticRegression(max_iter=20).fit(matrix, labels)
            made = pickle.dumps(make_pipeline(words, classifier))
            (folder / f"p{number}-{head:02}.pkl").write_bytes(made)


def loaded(folder: Path) -> dict[str, Any]:
    return {
        path.stem: pickle.loads(path.read_bytes())  # noqa: S301 # written above
        for path in sorted(folder.iterdir())
    }


def memory_of(way: str, folder: Path, documents: list[str]) -> float:
    """Return the bytes that a process takes for pipelines, after one request to each."""
    words = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.shelf", "--memory", way]
    ended = subprocess.run(
        [*words, str(folder)],
        input=json.dumps(documents[:5]),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return float(ended.stdout)


def memory_child(way: str, folder: Path) -> int:
    documents = json.loads(sys.stdin.read())
    # Imports of scikit-learn, of ONNX and of its converter are not counted.
    small = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(documents, range(5))
    small.predict(documents[:1])
    if way == "shelf":
        execution.Shelf([small])["0"].predict(documents[:1])
    process = psutil.Process()
    before = process.memory_info().rss
    held: Any = None
    if way == "shelf":
        held = execution.Shelf.load(folder)
        for name in held:
            held[name].predict(documents[:1])
        held.predict(documents)
    elif way == "floor":
        held = floor(folder)
    else:
        held = loaded(folder)
        for pipeline in held.values():
            pipeline.predict(documents[:1])
    print(process.memory_info().rss - before)
    return 0


def floor(folder: Path) -> list[Any]:
    """Return one vectoriser of each content, and numbers in the place of all coefficients."""
    held: list[Any] = []
    for number in range(FEATURISERS):
        pipeline = pickle.loads((folder / f"p{number}-00.pkl").read_bytes())  # noqa: S301
        rows, columns = pipeline.steps[-1][1].coef_.shape
        held += [pipeline.steps[0][1], np.ones((columns, rows * PIPELINES // FEATURISERS))]
    return held


def processes_memory(folder: Path, documents: list[str]) -> tuple[float, float]:
    """Return the bytes of a process with the shelf, and of one process for each pipeline."""
    (ours,) = pss([folder], documents)
    files = sorted(folder.iterdir())[:: PIPELINES // MEASURED_PROCESSES][:MEASURED_PROCESSES]
    return ours, statistics.mean(pss(files, documents)) * PIPELINES


def pss(served: Sequence[Path], documents: list[str]) -> list[float]:
    """Return the proportional set sizes of processes that run together, one for each path."""
    words = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.shelf", "--process"]
    with ExitStack() as started:
        processes = [
            started.enter_context(
                subprocess.Popen(
                    [*words, str(path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=Path(__file__).parents[2],
                )
            )
            for path in served
        ]
        for process in processes:
            assert process.stdin
            process.stdin.write(json.dumps(documents[:5]) + "\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        found = [float(psutil.Process(each.pid).memory_full_info().pss) for each in processes]
        for process in processes:
            assert process.stdin
            process.stdin.close()
    return found


def process_child(path: Path) -> int:
    documents = json.loads(sys.stdin.readline())
    held: Any
    if path.is_dir():
        held = execution.Shelf.load(path)
        for name in held:
            held[name].predict(documents[:1])
        held.predict(documents)
    else:
        held = pickle.loads(path.read_bytes())  # noqa: S301 # written above
        held.predict(documents)
    print("ready", flush=True)
    sys.stdin.read()
    return 0


def rows_of(folder: Path, documents: list[str], draw: random.Random, command: str) -> list[Row]:
    pipelines = loaded(folder)
    shelf = execution.Shelf.load(folder)
    begun = time.perf_counter()
    for name in shelf:
        shelf[name].predict(documents[:1])
    report.note(f"choices for single requests: {time.perf_counter() - begun:.0f} s")
    shelf.predict(documents)
    report.note(str(execution.explain(shelf)).split("predict of one row")[0])
    all_plain, all_shelf = [], []
    for _ in range(3):
        seconds, expected = timed(
            lambda: {name: each.predict(documents) for name, each in pipelines.items()}
        )
        all_plain.append(seconds)
        seconds, found = timed(lambda: shelf.predict(documents))
        all_shelf.append(seconds)
        assert all(np.array_equal(expected[name], found[name]) for name in expected)
    plain, ours, furthest = [], [], 0.0
    order = [name for name in pipelines for _ in range(REQUESTS)]
    draw.shuffle(order)
    for name in order:
        document = [draw.choice(documents)]
        seconds, one = timed(lambda n=name, d=document: pipelines[n].predict(d))
        plain.append(seconds)
        seconds, two = timed(lambda n=name, d=document: shelf[n].predict(d))
        ours.append(seconds)
        assert (one[0], one.dtype) == (two[0], two.dtype), name
    for name in draw.sample(list(pipelines), 20):
        for document in documents[:10]:
            one, two = (each[name].predict_proba([document]) for each in (pipelines, shelf))
            furthest = max(furthest, float(np.abs(one - two).max()))
    report.note(f"all labels equal; probabilities differ by at most {furthest:.1e}")
    return [
        Row(
            name=name,
            ours=found * scale,
            goal=FasterThan(peer=peer * scale, times=times),
            unit=unit,
            command=command,
        )
        for name, found, peer, times, scale, unit in (
            (
                f"{PIPELINES} pipelines on {DOCUMENTS} documents",
                statistics.median(all_shelf), statistics.median(all_plain), 15, 1e3, "ms",
            ),
            ("p99 of a single request", percentile(ours), percentile(plain), 4, 1e6, "µs"),
            ("mean of a single request", np.mean(ours), np.mean(plain), 4.7, 1e6, "µs"),
        )
    ]  # fmt: skip


def timed(work: Any) -> tuple[float, Any]:
    begun = time.thread_time()
    found = work()
    return time.thread_time() - begun, found


def percentile(seconds: list[float]) -> float:
    return float(np.percentile(seconds, 99))


def main(words: Sequence[str]) -> int:
    parser = report.parser("A shelf of text pipelines beside the same pickles in one process.")
    parser.add_argument("--memory", nargs=2, metavar=("WAY", "FOLDER"), help="used by itself")
    parser.add_argument("--process", metavar="PATH", help="used by itself")
    options = parser.parse_args(words)
    if options.memory:
        return memory_child(options.memory[0], Path(options.memory[1]))
    if options.process:
        return process_child(Path(options.process))
    command = report.command_line("tests.benchmarks.shelf", *words)
    draw = random.Random(0)  # noqa: S311
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        documents = write_pickles(folder, draw)
        ways = ("plain", "shelf", "floor")
        memory = {way: memory_of(way, folder, documents) for way in ways}
        report.note(f"coefficients and vectorisers alone: {memory['floor'] / _MIB:.0f} MiB")
        ours, processes = processes_memory(folder, documents)
        rows = rows_of(folder, documents, draw, command)
    rows[:0] = [
        Row(
            name=name, ours=found / _MIB,
            goal=FasterThan(peer=peer / _MIB, times=times), unit="MiB", command=command,
        )
        for name, found, peer, times in (
            ("memory of the pipelines", memory["shelf"], memory["plain"], 6),
            ("memory, beside one process a pipeline", ours, processes, 25),
        )
    ]  # fmt: skip
    return report.finish(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
