"""Measure probes: the largest batch under a memory cap, and the throughput that they find.

``python -m tests.benchmarks.advise --json``. The part about memory needs root and the memory
controller of control groups; each probe and each trial of the bisection is a process in it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import optuna

from carrel.extensions.advice.advise import advise
from carrel.extensions.advice.step_clock import seconds_of_step
from carrel.extensions.advice.thread_count import threads as thread_limit

GROUPS = Path("/sys/fs/cgroup")


def layers(width: int, depth: int) -> Callable[..., None]:
    """Return a step of a network: forward with all activations kept, then backward."""
    rng = np.random.default_rng(0)
    weights = [rng.random((width, width), dtype=np.float32) / width for _ in range(depth)]

    def step(data: Any, precision: str = "float32") -> None:
        kept = [data.astype(precision)]
        for weight in weights:
            kept.append(np.maximum(kept[-1] @ weight.astype(precision), 0))
        error = kept[-1]
        for weight, activation in zip(reversed(weights), reversed(kept[:-1]), strict=True):
            activation.T @ error
            error = error @ weight.T.astype(precision)

    return step


def batches(width: int) -> Callable[[int], Any]:
    return lambda size: np.ones((size, width), dtype=np.float32)


def in_group(cap: int, code: str, *arguments: object) -> tuple[int, str]:
    """Run a function of this module in a control group with a cap; return status and output."""
    old = GROUPS / "memory"
    folder = (old if old.exists() else GROUPS) / f"carrel-advise-{os.getpid()}"
    folder.mkdir()
    try:
        limit = "memory.limit_in_bytes" if old.exists() else "memory.max"
        (folder / limit).write_text(str(cap))
        process = subprocess.run(
            [sys.executable, "-P", "-m", "tests.benchmarks.advise", code, *map(str, arguments)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]),
                 "CARREL_GROUP": str(folder / "cgroup.procs"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip  # grouped
        return process.returncode, process.stdout
    finally:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:  # the kernel still frees the last process
                time.sleep(0.02)


def probe_in_group(width: int, depth: int, budget: int) -> None:
    found = advise(layers(width, depth), batches(width), batch=8, threads=[1], budget=budget)
    print(json.dumps({"largest": found.found.largest_batch, "seconds": found.found.seconds}))


def step_in_group(width: int, depth: int, batch: int) -> None:
    layers(width, depth)(batches(width)(batch))


def memory_part(probes: int, bisected: int, budget: int) -> dict[str, Any]:
    """Count the probes that are killed; compare those of some with bisection.

    Activations of narrow layers need little time for their memory, so that a probe of some seconds
    comes close to the cap.
    """
    rng = Random(1)  # noqa: S311  # to be repeated
    killed, failed, errors = 0, 0, []
    for number in range(probes):
        width, depth = rng.choice([64, 128]), rng.choice([2, 4])
        cap = rng.randrange(160, 320) << 20
        status, output = in_group(cap, "probe", width, depth, budget)
        killed += status == -signal.SIGKILL
        failed += status not in (0, -signal.SIGKILL)
        print(f"{number + 1} probes, {killed} killed", file=sys.stderr, flush=True)
        if status or number >= bisected:
            continue
        low, high = 1, 2 * max(64, json.loads(output)["largest"])
        while high - low > max(1, low // 200):
            middle = (low + high) // 2
            fits = in_group(cap, "step", width, depth, middle)[0] == 0
            low, high = (middle, high) if fits else (low, middle)
        errors.append(json.loads(output)["largest"] / low - 1)
    return {
        "probes": probes, "killed": killed, "failed": failed, "bisected": len(errors),
        "worst_error": max(map(abs, errors), default=None), "errors": errors,
    }  # fmt: skip  # grouped


def _full_seconds(step: Callable[[], object]) -> float:
    """Return the median seconds of a step, repeated for a fifth of a second after a first one."""
    step()
    taken: list[float] = []
    while len(taken) < 3 or (sum(taken) < 0.2 and len(taken) < 200):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def grid_part(rounds: int = 5) -> dict[str, Any]:
    """Compare the search with the whole grid and with random search of equal spend.

    In each round the grid is measured as usual, then with the stops of the search, and the search
    runs once. Rates are medians over the rounds; random search stops as ours does.
    """
    width, step = 256, layers(256, 2)
    sizes = [1 << power for power in range(12)]
    threads, precision = [2, 1], ["float32", "float64"]
    keys = [(size, count, kind) for size in sizes for count in threads for kind in precision]
    found_rates: dict[tuple[Any, ...], list[float]] = {key: [] for key in keys}
    found_seconds: dict[tuple[Any, ...], list[float]] = {key: [] for key in keys}
    of_grid, of_stopped_grid, measured, spends, chosen = [], [], [], [], []
    for number in range(rounds):
        totals = []
        for clock in (_full_seconds, seconds_of_step):
            begun = time.perf_counter()
            for key in keys:
                size, count, kind = key
                start = time.perf_counter()
                with thread_limit(count):
                    seconds = clock(lambda s=size, k=kind: step(batches(width)(s), k))
                if clock is _full_seconds:
                    found_rates[key].append(size / seconds)
                else:
                    found_seconds[key].append(time.perf_counter() - start)
            totals.append(time.perf_counter() - begun)
        found = advise(step, batches(width), batch=32, largest=sizes[-1], threads=threads,
                       precision=precision, memory=1 << 40)  # fmt: skip  # grouped
        setting = found.found.fastest.setting
        chosen.append((setting.batch, setting.threads, setting.precision))
        speed = [each for each in found.measured if each.rate]
        measured.append(len(speed))
        spends.append(sum(each.seconds for each in speed))
        of_grid.append(spends[-1] / totals[0])
        of_stopped_grid.append(spends[-1] / totals[1])
        print(f"{number + 1} rounds", file=sys.stderr, flush=True)
    rates = {key: (float(np.median(found_rates[key])), float(np.median(found_seconds[key])))
             for key in keys}  # fmt: skip  # grouped
    best = max(rate for rate, _ in rates.values())
    spent = float(np.median(spends))
    random_found = []
    for seed in range(20):
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        left = spent
        while left > 0:
            trial = study.ask()
            key = (trial.suggest_categorical("batch", sizes),
                   trial.suggest_categorical("threads", threads),
                   trial.suggest_categorical("precision", precision))  # fmt: skip  # grouped
            left -= rates[key][1]
            study.tell(trial, rates[key][0])
        random_found.append(study.best_value / best)
    return {
        "settings": len(rates), "measured": float(np.median(measured)),
        "of_best_rate": float(np.median([rates[key][0] for key in chosen])) / best,
        "of_grid_seconds": float(np.median(of_grid)),
        "of_seconds_of_the_grid_with_the_same_stops": float(np.median(of_stopped_grid)),
        "random_of_best_rate": float(np.median(random_found)),
    }  # fmt: skip  # grouped


def main() -> None:
    if sys.argv[1:2] in (["probe"], ["step"]):
        Path(os.environ["CARREL_GROUP"]).write_text(str(os.getpid()))
        {"probe": probe_in_group, "step": step_in_group}[sys.argv[1]](*map(int, sys.argv[2:]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=100)
    parser.add_argument("--bisected", type=int, default=5)
    parser.add_argument("--budget", type=int, default=2, help="seconds of each probe")
    parser.add_argument("--only", choices=["throughput", "memory"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    found: dict[str, Any] = {}
    if given.only != "memory":
        found["throughput"] = grid_part()
    if given.only != "throughput":
        found["memory"] = memory_part(given.probes, given.bisected, given.budget)
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
