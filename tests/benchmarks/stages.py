"""What ``carrel.stages`` saves: beside the ideal of its tree, Optuna and Ray Tune trial by trial.

The space is of Hippo's kind (piecewise learning rates of one network, with decays at several
steps): 3 first rates, 4 steps of the first decay, 2 factors, 3 steps of the second, 2 factors are
144 trials. A step is an epoch of a small network on one core: of PyTorch if it is installed, else
of NumPy.

All times are processor time, since other work on the machine disturbs a clock more. The ideal is
the time within the steps of the same run, each distinct step once; what is above it are checkpoints
and bookkeeping. Optuna and Ray Tune run the trials one by one, each all of its steps, and hear of
the last loss only; of Ray Tune, only the time within the trials counts. Ours runs before and after
Optuna. Without one of the peers there is no such row. Every loss has to be the same, bit for bit.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import carrel

from . import report
from .report import FasterThan, NotWorseThan, Row, middle

STEPS, ROUNDS = 60, 1
WITHIN = 1.05
SAMPLES, INPUTS, UNITS, BATCH = 1024, 32, 128, 64
Schedule = Mapping[str, Sequence[tuple[int, float]]]


def space() -> list[Schedule]:
    return [
        {"lr": [(0, lr), (first, lr * by), (second, lr * by * then)]}
        for lr, first, by, second, then in itertools.product(
            (0.05, 0.02, 0.01), (15, 20, 25, 30), (0.3, 0.1), (40, 45, 50), (0.3, 0.1)
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A network and its training, as a user would write them.

    Attributes:
        name: of the library.
        seed: seeds its random numbers.
    """

    name: str
    seed: Callable[[], object]
    start: Callable[[], Any]
    step: Callable[[Any, Mapping[str, float], int], float]

    def alone(self, schedule: Schedule) -> float:
        """Run all steps of a schedule, without Carrel; return the last loss."""
        self.seed()
        state, values, loss = self.start(), {}, 0.0
        changes = dict(schedule["lr"])
        for number in range(STEPS):
            values = {"lr": changes[number]} if number in changes else values
            loss = self.step(state, values, number)
        return loss


def data() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(SAMPLES, INPUTS)).astype(np.float32)
    return inputs, np.sin(inputs[:, :1]) + inputs[:, 1:2] * inputs[:, 2:3]


def numpy_training() -> Training:
    inputs, outputs = data()

    def start() -> dict[str, Any]:
        shapes = ((INPUTS, UNITS), (UNITS, 1))
        return {"weights": [np.random.normal(0, 0.1, shape) for shape in shapes]}

    def step(state: Any, values: Mapping[str, float], number: int) -> float:
        first, last = state["weights"]
        total = 0.0
        for chosen in np.split(np.random.permutation(SAMPLES), SAMPLES // BATCH):
            hidden = np.maximum(inputs[chosen] @ first, 0)
            error = hidden @ last - outputs[chosen]
            back = (error @ last.T) * (hidden > 0)
            last -= values["lr"] * hidden.T @ error / BATCH
            first -= values["lr"] * inputs[chosen].T @ back / BATCH
            total += float((error**2).sum())
        return total / SAMPLES

    return Training(name="NumPy", seed=lambda: np.random.seed(0), start=start, step=step)


def torch_training() -> Training:
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    inputs, outputs = map(torch.from_numpy, data())

    def start() -> Any:
        layers = torch.nn.Linear(INPUTS, UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS, 1)
        model = torch.nn.Sequential(*layers)
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(state: Any, values: Mapping[str, float], number: int) -> float:
        model, optimizer = state
        optimizer.param_groups[0]["lr"] = values["lr"]
        total = 0.0
        for chosen in torch.randperm(SAMPLES).split(BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs[chosen]), outputs[chosen])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
        return total / SAMPLES

    return Training(name="PyTorch", seed=lambda: torch.manual_seed(0), start=start, step=step)


def training() -> Training:
    return torch_training() if importlib.util.find_spec("torch") else numpy_training()


@dataclass(slots=True)
class FoundStages:
    """Seconds of processor time, one entry a run; empty where it could not be measured."""

    ours: list[float] = field(default_factory=list)
    within_steps: list[float] = field(default_factory=list)
    optuna: list[float] = field(default_factory=list)
    ray: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    tree: int = 0
    alone: int = 0


def with_stages(job: Training, trials: Sequence[Schedule], found: FoundStages) -> list[float]:
    within = 0.0

    def step(state: Any, values: Mapping[str, float], number: int) -> float:
        nonlocal within
        begin = time.process_time()
        loss = job.step(state, values, number)
        within += time.process_time() - begin
        return loss

    begin = time.process_time()
    study = carrel.stages(job.start, step, trials, steps=STEPS, objective="loss")
    found.ours.append(time.process_time() - begin)
    found.within_steps.append(within)
    counts = study.saved
    found.steps.append(counts.run)
    found.tree, found.alone = counts.tree, counts.alone
    return [float(row["loss"]) for row in study.trials()]


def with_optuna(job: Training, trials: Sequence[Schedule], found: FoundStages) -> list[float]:
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    numbers = list(range(len(trials)))
    study = optuna.create_study(sampler=optuna.samplers.GridSampler({"number": numbers}, seed=0))

    def objective(trial: Any) -> float:
        return job.alone(trials[trial.suggest_categorical("number", numbers)])

    begin = time.process_time()
    study.optimize(objective, n_trials=len(trials))
    found.optuna.append(time.process_time() - begin)
    losses = {trial.params["number"]: trial.value for trial in study.trials}
    return [losses[number] for number in numbers]


def ray_trial(config: Mapping[str, int]) -> Mapping[str, float]:
    job, schedule = training(), space()[config["number"]]
    begin = time.process_time()
    loss = job.alone(schedule)
    return {"loss": loss, "seconds": time.process_time() - begin}


def with_ray(trials: int, found: FoundStages) -> list[float]:
    ray: Any = importlib.import_module("ray")
    tune: Any = importlib.import_module("ray.tune")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="carrel-ray-") as folder:
            tuner = tune.Tuner(
                ray_trial,
                param_space={"number": tune.grid_search(list(range(trials)))},
                tune_config=tune.TuneConfig(reuse_actors=True),
                run_config=tune.RunConfig(storage_path=folder, verbose=0),
            )
            results = tuner.fit()
            found.ray.append(sum(each.metrics["seconds"] for each in results))
            losses = {each.config["number"]: each.metrics["loss"] for each in results}
            return [losses[number] for number in range(trials)]
    finally:
        ray.shutdown()


def rows(job: Training, trials: int, found: FoundStages, line: str) -> list[Row]:
    share = found.tree / found.alone if found.alone else 1.0

    def milliseconds(seconds: Sequence[float]) -> float | None:
        value = middle(seconds)
        return None if value is None else 1000 * value

    def row(name: str, value: float | None, goal: report.Goal, unit: str = "ms") -> Row:
        return Row(name=name, ours=value, goal=goal, unit=unit, command=line)

    ours = milliseconds(found.ours)
    times = round(1 / share / WITHIN, 2)
    return [
        row(
            f"steps of {trials} trials, beside the distinct ones of {found.alone:,}",
            middle(found.steps),
            NotWorseThan(peer=found.tree or None, times=WITHIN),
            "steps",
        ),
        row(
            f"time of {trials} trials of {job.name}, beside the ideal of the tree",
            ours,
            NotWorseThan(peer=milliseconds(found.within_steps), times=WITHIN),
        ),
        row(
            "the same, beside Optuna trial by trial",
            ours,
            FasterThan(peer=milliseconds(found.optuna), times=times),
        ),
        row(
            "the same, beside Ray Tune trial by trial",
            ours,
            FasterThan(peer=milliseconds(found.ray), times=times),
        ),
    ]


def measure(job: Training, found: FoundStages) -> None:
    trials = space()
    peers = {
        "optuna": (lambda: with_optuna(job, trials, found), found.optuna),
        "ray": (lambda: with_ray(len(trials), found), found.ray),
    }
    ours = with_stages(job, trials, found)
    report.note(f"stages {found.ours[-1]:.2f} s, {found.steps[-1]:,.0f} of {found.alone:,} steps")
    for name, (run, seconds) in peers.items():
        if importlib.util.find_spec(name) is None:
            report.note(f"{name}: not measured, since it is not installed")
            continue
        assert run() == ours, f"{name} has other losses"
        report.note(f"{name} {seconds[-1]:.2f} s")
        if name == "optuna":
            with_stages(job, trials, found)
            report.note(f"stages {found.ours[-1]:.2f} s")


def main(words: Sequence[str]) -> int:
    parser = report.parser("What stages of a training save.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each kind (1)")
    options = parser.parse_args(words)
    line = report.command_line("tests.benchmarks.stages", *words)
    job, found = training(), FoundStages()
    job.alone(space()[0])  # loads what the first step would
    for _ in range(options.rounds):
        measure(job, found)
    return report.finish(rows(job, len(space()), found, line), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
