"""Score pictures by ``carrel.spark_scores`` beside a loop in one Python process.

pyspark, Java 17 and PyTorch must be installed (``make test-slow SPARK=1 TORCH=1`` does it). Files
of JPEG are read, decoded, scaled and scored by a small network, by all ways in turns. Spark reads
the files in Java, or gives their paths to its Python processes. The peer is the faster of two loops
in one process, with one thread and with as many as PyTorch takes by itself. The start of Java and
of Spark's Python processes is not counted: a first run warms all ways up.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

import carrel
from carrel.extensions.spark import lease_limits
from carrel.extensions.spark.columns import pictures

from .. import pyspark_packages, torch_packages
from . import report
from .report import Beside, FasterThan, Row

SIZE = (96, 128)
BATCH = 32
TIMES = 1.4
CORES = 2


def write_pictures(folder: Path, count: int) -> list[Path]:
    """Write files of JPEG of 640 by 480 pixels: smooth scenes with noise."""
    draw = np.random.default_rng(0)
    paths = []
    for number in range(count):
        coarse = Image.fromarray(draw.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((640, 480), Image.Resampling.BILINEAR), np.int16)
        noisy = (smooth + draw.integers(-9, 10, smooth.shape)).clip(0, 255).astype(np.uint8)
        paths.append(folder / f"{number:05}.jpg")
        Image.fromarray(noisy).save(paths[-1], quality=85)
    return paths


def network(torch: Any) -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 10),
    ).eval()  # fmt: skip


def by_a_loop(torch: Any, model: Any, paths: Sequence[Path]) -> Any:
    parts = []
    with torch.inference_mode():
        for begin in range(0, len(paths), BATCH):
            contents = [path.read_bytes() for path in paths[begin : begin + BATCH]]
            parts.append(model(torch.from_numpy(pictures(contents, SIZE))).double().numpy())
    return np.concatenate(parts)


def by_spark(session: Any, model: Any, folder: Path, inputs: str) -> Any:
    """Return the scores of all pictures, whose column is ``content`` or ``path``."""
    files = session.read.format("binaryFile").option("pathGlobFilter", "*.jpg")
    photos = files.load(str(folder)).select(*{"path", inputs})
    scored = carrel.spark_scores(photos, model, inputs, size=SIZE, batch=BATCH, keep=["path"])
    found = scored.toPandas().sort_values("path")
    return np.stack(found["scores"])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def measured(torch: Any, folder: Path, paths: Sequence[Path], turns: int) -> dict[str, float]:
    """Return the median seconds of each way; all scores must be equal."""
    model = network(torch)
    begun = time.perf_counter()
    session = carrel.spark(cores=CORES)
    report.note(f"start of the session: {time.perf_counter() - begun:.1f} s")

    def loop(threads: int) -> Any:
        torch.set_num_threads(threads)
        return by_a_loop(torch, model, paths)

    ways: dict[str, Callable[[], Any]] = {
        "spark, content": lambda: by_spark(session, model, folder, "content"),
        "spark, path": lambda: by_spark(session, model, folder, "path"),
        "one thread": lambda: loop(1),
        "all threads": lambda: loop(CORES),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    expected = ways["one thread"]()
    for turn in range(turns + 1):
        for name, work in ways.items():
            taken, found = timed(work)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
            assert (found.argmax(1) == expected.argmax(1)).all()
            report.note(f"{name}: {taken:.2f} s{'' if turn else ' (not counted)'}")
            if turn:
                seconds[name].append(taken)
    session.stop()
    return {name: median(each) for name, each in seconds.items()}


def main(words: Sequence[str]) -> int:
    parser = report.parser("Score pictures by Spark beside one Python process, on two cores.")
    parser.add_argument("--pictures", type=int, default=1200)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.spark", *words)
    if lease_limits.cores() < CORES:
        report.note(f"This needs {CORES} cores.")
        return 1
    if not pyspark_packages.PACKAGES.available("pyspark"):
        report.note("pyspark is missing: python -m tests.pyspark_packages")
        return 1
    torch = torch_packages.PACKAGES.load()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        paths = write_pictures(folder, options.pictures)
        found = measured(torch, folder, paths, options.turns)
    peer = min(found["one thread"], found["all threads"]) * 1e3
    name = f"{options.pictures} pictures scored"
    rows = [
        Row(
            name=f"{name}, by their paths", ours=found["spark, path"] * 1e3,
            goal=FasterThan(peer=peer, times=TIMES), unit="ms", command=command,
        ),
        Row(
            name=f"{name}, read by Spark", ours=found["spark, content"] * 1e3,
            goal=Beside(peer=peer), unit="ms", command=command,
        ),
    ]  # fmt: skip
    return report.finish(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
