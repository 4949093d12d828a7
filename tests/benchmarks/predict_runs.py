"""Predicted run times of real notebooks: ``python -m tests.benchmarks.predict_runs``.

Ten notebooks run thirty times each, executed by Carrel's runner, with parameters that are drawn
anew for each run and with one thread or two. The order is random; the last third is predicted,
each run from all that ended before. ``--runs FILE`` keeps the measured runs, and goes on where it
was interrupted. With ``--past FILE``, the runs of that file are known before, and all measured ones
are predicted.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from carrel.hub.insight.model_fit import train
from carrel.hub.insight.past_runs import PastRun, PlannedRun
from carrel.hub.insight.predictor import RunTimePredictor
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.interfaces.run_times import Basis
from carrel.spawners.local.backend import LocalBackend

from ..spawners.attempts import wait_for_end
from ..spawners.conftest import Desk
from ..spawners.fake_service import FakeService
from ..spawners.notebooks import notebook
from . import report
from .run_notebooks import NOTEBOOKS

MODULE = "tests.benchmarks.predict_runs"
RUNS = 300
TEST = 100
SEED = 34
OURS = "Carrel"
_LIMIT = 600.0


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run; ``cpu`` is the processor time of the attempt in seconds."""

    program: str
    parameters: dict[str, int]
    at: float
    seconds: float
    cpu: float


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.add_argument("--runs", type=Path, help="a file of measured runs, as JSON lines")
    parser.add_argument("--count", type=int, default=RUNS, help="number of runs")
    parser.add_argument("--past", type=Path, help="a file of runs that ended before")
    parser.add_argument("--seed", type=int, default=SEED, help="draws parameters and order")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = chosen.runs or Path(folder) / "runs.jsonl"
        runs = measured(Path(folder), file, chosen.count, chosen.seed)
    if chosen.past is None:
        found = rows(runs, max(1, len(runs) * TEST // RUNS))
    else:
        past = [MeasuredRun(**json.loads(line)) for line in _lines(chosen.past)]
        found = rows([*past, *runs], len(runs))
    return report.finish(list(found), as_json=chosen.json)


def planned(count: int, seed: int = SEED) -> list[tuple[str, dict[str, int]]]:
    """Return notebooks and parameters in their random order."""
    drawn = random.Random(seed)  # noqa: S311
    names = [name for name in NOTEBOOKS for _ in range(RUNS // len(NOTEBOOKS))]
    drawn.shuffle(names)
    return [(name, NOTEBOOKS[name].draw(drawn)) for name in names][:count]


def measured(folder: Path, file: Path, count: int, seed: int) -> list[MeasuredRun]:
    """Return all runs; those that the file has not yet are executed now."""
    known = [MeasuredRun(**json.loads(line)) for line in _lines(file)]
    service = FakeService().up()
    settings = BackendSettings(state=folder, service_url=service.url, simulated_devices=1)
    backend = LocalBackend(settings, node="node")
    desk = Desk(folder=folder, service=service, settings=settings, backend=backend)
    try:
        for program, parameters in planned(count, seed)[len(known) :]:
            run = _executed(desk, program, parameters)
            known.append(run)
            with file.open("a") as out:
                out.write(json.dumps(_plain(run)) + "\n")
            report.note(f"{len(known)} {program} {run.seconds:.1f} s, processor {run.cpu:.1f} s")
    finally:
        for lease in desk.leases:
            backend.stop(lease, None)
        service.down()
    return known


def _executed(desk: Desk, program: str, parameters: dict[str, int]) -> MeasuredRun:
    made = NOTEBOOKS[program]
    text = notebook(*made.sources, parameters=made.parameters)
    order = desk.order(text, devices=0, parameters=parameters)
    before, at = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    status = wait_for_end(desk, order, desk.backend.start(order))
    seconds, after = time.time() - at, resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        raise AssertionError(f"{program} {parameters} ended with {status}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return MeasuredRun(program, parameters, at, seconds, cpu)


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _plain(run: MeasuredRun) -> dict[str, object]:
    return {name: getattr(run, name) for name in MeasuredRun.__slots__}


def rows(runs: Sequence[MeasuredRun], test: int) -> Iterator[report.Row]:
    """Yield the errors on the last ``test`` runs, by the time on the wall and by processor time."""
    for what, seconds in (("run time", _wall), ("processor time", _processor)):
        if not all(seconds(run) for run in runs):
            continue
        past = [_past(run, seconds(run)) for run in runs]
        errors = {name: 100 * error for name, error in _errors(past, test).items()}
        ours = errors.pop(OURS)
        yield _row(f"mean relative error of the {what}", ours, report.AtMost(limit=10))
        for peer, error in errors.items():
            yield _row(f"the same, beside the {peer}", ours, report.Beside(peer=error))


def _row(name: str, ours: float, goal: report.Goal) -> report.Row:
    command = report.command_line(MODULE)
    return report.Row(name=name, ours=ours, goal=goal, unit="%", command=command)


def _wall(run: MeasuredRun) -> float:
    return run.seconds


def _processor(run: MeasuredRun) -> float:
    return run.cpu


def _past(run: MeasuredRun, seconds: float) -> PastRun:
    plan = PlannedRun(
        at=run.at,
        owner="ada",
        group="lab",
        program=run.program,
        parameters={name: float(value) for name, value in run.parameters.items()},
        limit=_LIMIT,
    )
    return PastRun(plan=plan, ended_at=run.at + run.seconds, seconds=seconds)


def _errors(past: Sequence[PastRun], test: int) -> dict[str, float]:
    """Return the mean relative error of each predictor on the last ``test`` runs."""
    predictors: dict[str, Callable[[int], float]] = {
        OURS: _carrel(past, len(past) - test),
        "last two of the notebook": lambda at: fmean(_alike(past, at)[-2:]),
        "median of the notebook": lambda at: median(_alike(past, at)),
        "last two of the user": lambda at: fmean(run.seconds for run in past[at - 2 : at]),
    }
    return {
        name: fmean(
            abs(predict(at) - past[at].seconds) / past[at].seconds
            for at in range(len(past) - test, len(past))
        )
        for name, predict in predictors.items()
    }


def _carrel(past: Sequence[PastRun], begin: int) -> Callable[[int], float]:
    """Return the predictor with the model of the runs before ``begin``, if these are enough."""
    predictor, known = RunTimePredictor(train(past[:begin])), 0

    def predict(at: int) -> float:
        nonlocal known
        for run in past[known:at]:
            predictor.observe(run)
        known = at
        found = predictor.predict(past[at].plan).forecast
        assert found.basis in Basis
        return found.seconds

    return predict


def _alike(past: Sequence[PastRun], at: int) -> list[float]:
    program = past[at].plan.program
    return [run.seconds for run in past[:at] if run.plan.program == program]


if __name__ == "__main__":
    sys.exit(main())
