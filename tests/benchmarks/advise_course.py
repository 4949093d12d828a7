"""Advice on the trainings of the sample course: ``python -m tests.benchmarks.advise_course``.

Each training has its own defaults and the loss at their end. It is run once more with the batch
that ``carrel.advise`` finds the fastest, and with the usual rule for the learning rate, until its
loss is as low. The advised run is charged with the probe; seconds of one processor are
device-seconds. A training that does not reach the loss in four times the time of the defaults
counts with that time.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from carrel.extensions.advice.advise import advise

from .. import torch_packages
from . import report

MODULE = "tests.benchmarks.advise_course"
COURSE = Path(__file__).parents[2] / "courses" / "sample"
GOAL_PERCENT = 25.0
ENOUGH = 1.001
"""A loss is equal if it is at most so many times that of the defaults."""
MOST_TIMES = 4.0
"""An advised run ends after so many times the seconds of the defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training with the defaults of its notebook.

    Attributes:
        size: samples of an epoch.
        start: returns a new state for a learning rate.
        step: one update of the state by the samples with these numbers.
        loss: of the state, over all samples.
        rate_power: the learning rate grows with the batch to this power: 1 for SGD, 1/2 for Adam.
    """

    name: str
    size: int
    batch: int
    epochs: int
    rate: float
    start: Callable[[float], Any]
    step: Callable[[Any, Any], None]
    loss: Callable[[Any], float]
    rate_power: float = 1.0


def functions_of(unit: str, training: str) -> dict[str, Any]:
    """Run the code cells of a notebook up to the one of its training; return its names.

    Cells of tests, plots and timings are left out.
    """
    (path,) = (COURSE / "source").glob(f"{unit}*/*.ipynb")
    found: dict[str, Any] = {"__name__": "notebook"}
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        grade = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        left_out = grade.startswith("test-") or "plt." in source or "seconds_of(" in source
        if cell["cell_type"] == "code" and not left_out:
            with redirect_stdout(StringIO()):
                exec(compile(source, f"{unit}:{grade}", "exec"), found)  # noqa: S102  # the course's
        if grade == training:
            return found
    raise AssertionError(f"{path} has no cell {training}")


def digits_by_hand() -> Training:
    """Unit 2: softmax regression by SGD."""
    names = functions_of("unit2", "train")
    x, y = names["train_x"], names["train_y"]

    def step(state: Any, chosen: Any) -> None:
        of_weights, of_bias = names["gradients"](x[chosen], y[chosen], *state[:2])
        state[0] -= state[2] * of_weights
        state[1] -= state[2] * of_bias

    def loss(state: Any) -> float:
        return float(names["cross_entropy"](names["softmax"](x @ state[0] + state[1]), y))

    return Training(
        name="unit 2: a classifier on digits",
        size=len(x),
        batch=32,
        epochs=30,
        rate=0.5,
        start=lambda rate: [np.zeros((x.shape[1], 10)), np.zeros(10), rate],
        step=step,
        loss=loss,
    )


def differentiated() -> Training:
    """Unit 3: two numbers by gradient descent over six measurements."""
    names = functions_of("unit3", "fit")
    times = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    sizes = [2.0 * math.exp(0.7 * at) for at in times]
    value, exp = names["Value"], names["exp"]

    def mean_square(a: Any, b: Any, chosen: Any) -> Any:
        squares = [(a * exp(b * times[n]) - sizes[n]) ** 2 for n in chosen]
        return sum(squares) / len(squares)

    def step(state: Any, chosen: Any) -> None:
        a, b = value(state[0]), value(state[1])
        names["backward"](mean_square(a, b, chosen))
        state[:2] = state[0] - state[2] * a.grad, state[1] - state[2] * b.grad

    def loss(state: Any) -> float:
        squares = [(state[0] * math.exp(state[1] * t) - s) ** 2
                   for t, s in zip(times, sizes, strict=True)]  # fmt: skip  # one expression
        return sum(squares) / len(squares)

    return Training(
        name="unit 3: differentiate your program",
        size=6,
        batch=6,
        epochs=400,
        rate=0.05,
        start=lambda rate: [1.0, 0.0, rate],
        step=step,
        loss=loss,
    )


def data_parallel() -> Training:
    """Unit 4: linear regression by gradient descent over all samples."""
    drawn = np.random.default_rng(4)
    x = drawn.normal(size=(60, 3))
    y = x @ np.array([1.0, -2.0, 0.5])

    def step(state: Any, chosen: Any) -> None:
        off = x[chosen] @ state[0] - y[chosen]
        state[0] -= state[1] * 2 * x[chosen].T @ off / len(off)

    return Training(
        name="unit 4: batches and devices",
        size=60,
        batch=60,
        epochs=50,
        rate=0.1,
        start=lambda rate: [np.zeros(3), rate],
        step=step,
        loss=lambda state: float(np.mean((x @ state[0] - y) ** 2)),
    )


def recursive_models() -> Training:
    """Unit 6: a TreeLSTM by Adam over all trees; needs PyTorch."""
    if not torch_packages.available("torch"):
        raise ImportError("no PyTorch: python -m tests.torch_packages")
    import torch  # noqa: PLC0415  # only here

    names = functions_of("unit6", "train")
    trees = names["random_forest"](24)
    wanted = names["wanted_of"](trees)
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits

    def start(rate: float) -> Any:
        model = names["model_of"](16)
        return model, torch.optim.Adam(model.parameters(), lr=rate)

    def step(state: Any, chosen: Any) -> None:
        model, optimizer = state
        optimizer.zero_grad()
        found = names["scores"]([trees[n] for n in chosen], model)
        cross_entropy(found, wanted[list(chosen)]).backward()
        optimizer.step()

    def loss(state: Any) -> float:
        with torch.no_grad():
            return float(cross_entropy(names["scores"](trees, state[0]), wanted))

    return Training(
        name="unit 6: recursive models",
        size=24,
        batch=24,
        epochs=25,
        rate=0.03,
        start=start,
        step=step,
        loss=loss,
        rate_power=0.5,
    )


def digits_by_network() -> Training:
    """``digits.ipynb``: a network of scikit-learn by Adam; 200 samples are its default batch."""
    from sklearn.datasets import load_digits  # noqa: PLC0415  # only here
    from sklearn.metrics import log_loss  # noqa: PLC0415
    from sklearn.model_selection import train_test_split  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    digits = load_digits()
    x, _, y, _ = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.25, random_state=0, stratify=digits.target
    )

    def start(rate: float) -> Any:
        return MLPClassifier(hidden_layer_sizes=(32,), random_state=0, learning_rate_init=rate)

    def step(state: Any, chosen: Any) -> None:
        state.set_params(batch_size=len(chosen))
        state.partial_fit(x[chosen], y[chosen], classes=range(10))

    return Training(
        name="digits.ipynb",
        size=len(x),
        batch=200,
        epochs=40,
        rate=0.001,
        start=start,
        step=step,
        loss=lambda state: float(log_loss(y, state.predict_proba(x))),
        rate_power=0.5,
    )


def epoch(training: Training, state: Any, batch: int, drawn: np.random.Generator) -> float:
    """Run an epoch; return its seconds."""
    begin = time.perf_counter()
    order = drawn.permutation(training.size)
    for first in range(0, training.size, batch):
        training.step(state, order[first : first + batch])
    return time.perf_counter() - begin


def defaults(training: Training) -> tuple[float, float]:
    """Return the seconds and the last loss of the training as it is."""
    state, drawn = training.start(training.rate), np.random.default_rng(0)
    seconds = sum(epoch(training, state, training.batch, drawn) for _ in range(training.epochs))
    return seconds, training.loss(state)


def advised(training: Training, batch: int, wanted: float, most: float) -> tuple[float, bool]:
    """Return the seconds until the loss is as low as wanted, and whether it became so."""
    rate = training.rate * (batch / training.batch) ** training.rate_power
    state, drawn, seconds = training.start(rate), np.random.default_rng(0), 0.0
    while seconds < most:
        seconds += epoch(training, state, batch, drawn)
        if training.loss(state) <= wanted * ENOUGH:
            return seconds, True
    return seconds, False


def probe(training: Training) -> tuple[float, int]:
    """Return the seconds of a probe, and the batch that it finds the fastest."""
    state = training.start(training.rate)
    begin = time.perf_counter()
    found = advise(
        lambda chosen: training.step(state, chosen),
        lambda size: np.arange(size) % training.size,
        batch=training.batch,
        largest=training.size,
        samples=training.epochs * training.size,
        threads=[1],
    )
    return time.perf_counter() - begin, found.found.fastest.setting.batch or training.batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The seconds of one round, and the advised batch."""

    default: float
    probe: float
    train: float
    batch: int
    reached: bool

    @property
    def percent(self) -> float:
        return 100 * (self.probe + self.train) / self.default


def compared(training: Training) -> Comparison:
    seconds, wanted = defaults(training)
    probed, batch = probe(training)
    if batch == training.batch:
        train, reached = defaults(training)[0], True
    else:
        train, reached = advised(training, batch, wanted, MOST_TIMES * seconds)
    return Comparison(default=seconds, probe=probed, train=train, batch=batch, reached=reached)


def rows(rounds: int) -> Iterator[report.Row]:
    for make in (
        digits_by_hand, differentiated, data_parallel, recursive_models, digits_by_network,
    ):  # fmt: skip  # one line of names
        try:
            training = make()
        except ImportError as error:
            report.note(f"{make.__doc__} Not measured: {error}")
            continue
        compared(training)  # the first run is slower
        found = [compared(training) for _ in range(rounds)]
        middle = sorted(found, key=lambda each: each.percent)[len(found) // 2]
        reached = sum(each.reached for each in found)
        report.note(
            f"{training.name}: defaults {median(each.default for each in found) * 1e3:.1f} ms, "
            f"probe {middle.probe * 1e3:.0f} ms, batch {training.batch} -> {middle.batch}, "
            f"run {middle.train * 1e3:.1f} ms, loss reached in {reached} of {rounds}"
        )
        yield report.Row(
            name=f"{training.name}: device-seconds, of the defaults'",
            ours=middle.percent,
            goal=report.AtMost(limit=GOAL_PERCENT),
            unit="%",
            command=report.command_line(MODULE),
        )


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    return report.finish(list(rows(given.rounds)), as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
