"""What a sweep costs: beside the ideal of its stage tree, and beside the ``papermill`` command.

One installation with one device is brought up for it and taken down again.

* device time: 16 trials, one at a time, that share the first 70 % of their time; the seconds for
  which the device is granted, beside those of the stage tree for the median time of each cell as
  the kernels report it. Once with cells that sleep, once with cells that compute.
* papermill: 16 trials of 50 ms, after imports and 1 s of work that they share, without a device.
  From the POST to the terminal state by the service's clock, beside the command for each trial,
  one by one and two at a time.
* fork: a kernel that holds an array of 2 GB. From the end of the shared cell to the start of the
  first branch's cell, by the clocks of the kernels: it contains the request, the fork, and its
  first reply. Then the private memory of the fork, as it reads it in ``/proc``.

The user's fork server has been started by a job before, as for anybody's second job.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median

import httpx
import nbformat
import psutil

from carrel.hub.attempts.trials import notebook_name
from carrel.hub.sweeps.notebook_analysis import analyse_notebook
from carrel.hub.sweeps.notebook_cells import read_sweep_notebook
from carrel.hub.sweeps.space_syntax import space_from_json
from carrel.hub.sweeps.stage_tree import stage_tree, sweep_cost

from ..e2e.support import Installation, installation
from . import report
from .batch import ASK_SECONDS, command, imports, warm
from .report import AtMost, FasterThan, NotWorseThan, Row, middle
from .submit import ENDED, STUDENT, made_notebook

TRIALS, ROUNDS = 16, 3
SECONDS, SHARED = 2.0, 0.7
"""Of one trial alone, and the part of it that trials share."""
GIGABYTES = 2.0
SPARE_GIGABYTES = 2.0
WITHIN = 300.0
IDEAL_TIMES = 1.1
ONE_BY_ONE, TWO_AT_A_TIME = 10, 5
FORK_MILLISECONDS = 300.0
SPIN = "ends = process_time() + {seconds}\nwhile process_time() < ends:\n    sum(range(1000))"
SLEEP = "time.sleep({seconds})"
PRIVATE = """
import json
lines = open("/proc/self/smaps_rollup").read().splitlines()[1:]
sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
print(json.dumps({"lr": lr, "held": held.nbytes, **sizes}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured.

    Attributes:
        rounds: sweeps of each kind.
        gigabytes: size of the array of the kernel that is forked.
    """

    trials: int
    rounds: int
    gigabytes: float


@dataclass(slots=True)
class FoundSweeps:
    """Seconds, milliseconds and MB, one entry a run; empty where it could not be measured."""

    sleeping: list[float] = field(default_factory=list)
    sleeping_ideal: list[float] = field(default_factory=list)
    computing: list[float] = field(default_factory=list)
    computing_ideal: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    ours_by_two: list[float] = field(default_factory=list)
    papermill: list[float] = field(default_factory=list)
    papermill_by_two: list[float] = field(default_factory=list)
    fork: list[float] = field(default_factory=list)
    private: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)


def swept_notebook(*sources: str) -> nbformat.NotebookNode:
    notebook = made_notebook("lr = 0", *sources)
    notebook.cells[0].metadata["tags"] = ["parameters"]
    return notebook


def space(trials: int) -> Mapping[str, object]:
    return {"grid": {"lr": list(range(1, trials + 1))}}


def run_sweep(
    site: Installation,
    notebook: nbformat.NotebookNode,
    trials: int,
    *,
    parallel: int = 1,
    devices: int = 0,
) -> tuple[str, float]:
    """Return the id of the job, and the milliseconds from the POST to its terminal state."""
    body = {
        "kind": "job",
        "group": "cs101",
        "devices": devices,
        "notebook": {"name": "n.ipynb", "content": nbformat.writes(notebook)},
        "sweep": {"space": space(trials), "parallel": parallel},
    }
    begin = time.time()
    answer = site.api("POST", "/requests", user=STUDENT, json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    request_id = str(answer.json()["id"])
    ended = site.wait_for(request_id, *ENDED, user=STUDENT, within=WITHIN, every=ASK_SECONDS)
    assert ended["state"] == "succeeded", ended
    return request_id, 1000 * (float(ended["ended_at"]) - begin)


def trial_notebooks(
    site: Installation, request_id: str, trials: int
) -> Sequence[nbformat.NotebookNode]:
    folder = next(site.state.glob(f"outputs/{request_id}/*/files"))
    return [
        nbformat.read(folder / notebook_name(number), as_version=4)
        for number in range(1, trials + 1)
    ]


def moment(cell: nbformat.NotebookNode, state: str) -> float:
    """Return when a cell was started or done, by the clock of its kernel."""
    text = str(cell.metadata.execution[f"iopub.status.{state}"])
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def executed(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """Yield the cells that a kernel has executed, all but the injected parameters."""
    yield from (cell for cell in notebook.cells if "execution" in cell.metadata)


def cell_seconds(notebooks: Sequence[nbformat.NotebookNode]) -> Sequence[float]:
    """Return the median time of each cell over the trials."""
    each = [
        [moment(cell, "idle") - moment(cell, "busy") for cell in executed(notebook)]
        for notebook in notebooks
    ]
    return [median(times) for times in zip(*each, strict=True)]


def ideal_seconds(notebook: nbformat.NotebookNode, trials: int, cells: Sequence[float]) -> float:
    found = read_sweep_notebook("n.ipynb", nbformat.writes(notebook))
    numbered = space_from_json(space(trials)).trials()
    return sweep_cost(stage_tree(analyse_notebook(found), numbered), cells).shared


def granted_seconds(site: Installation, request_id: str) -> float:
    lease = site.request(request_id, user=STUDENT)["lease"]
    return float(lease["released_at"]) - float(lease["granted_at"])


def measure_device_time(
    site: Installation, work: str, sizes: Sizes, ours: list[float], ideal: list[float]
) -> None:
    shared, branch = SHARED * SECONDS, (1 - SHARED) * SECONDS
    notebook = swept_notebook(
        "import time\nfrom time import process_time",
        work.format(seconds=shared),
        f"{work.format(seconds=branch)}\nprint(lr)",
    )
    # Each trial would run the cells that read a clock; their author knows better.
    notebook.cells[2].metadata["tags"] = ["carrel-share"]
    for _ in range(sizes.rounds):
        request_id, _ = run_sweep(site, notebook, sizes.trials, devices=1)
        ours.append(granted_seconds(site, request_id))
        cells = cell_seconds(trial_notebooks(site, request_id, sizes.trials))
        ideal.append(ideal_seconds(notebook, sizes.trials, cells))
        report.note(f"device time {ours[-1]:.2f} s, ideal {ideal[-1]:.2f} s")


def measure_papermill(site: Installation, folder: Path, sizes: Sizes, found: FoundSweeps) -> None:
    notebook = swept_notebook(
        f"import time\n{imports()}", "time.sleep(1)", "time.sleep(0.05)\nprint(lr)"
    )
    nbformat.write(notebook, folder / "swept.ipynb")
    warm(site, made_notebook(imports()))

    def by_command(number: int) -> None:
        command(folder, "papermill", "swept.ipynb", f"out-{number}.ipynb", "-p", "lr", str(number))

    def all_by_command(at_a_time: int) -> float:
        begin = time.perf_counter()
        with ThreadPoolExecutor(at_a_time) as pool:
            list(pool.map(by_command, range(1, sizes.trials + 1)))
        return 1000 * (time.perf_counter() - begin)

    for _ in range(sizes.rounds):
        found.ours.append(run_sweep(site, notebook, sizes.trials)[1])
        found.papermill.append(all_by_command(1))
        found.ours_by_two.append(run_sweep(site, notebook, sizes.trials, parallel=2)[1])
        found.papermill_by_two.append(all_by_command(2))
        report.note(
            f"sweep {found.ours[-1]:.0f} ms, papermill {found.papermill[-1]:.0f} ms; two at a time "
            f"{found.ours_by_two[-1]:.0f} ms, papermill {found.papermill_by_two[-1]:.0f} ms"
        )


def measure_fork(site: Installation, sizes: Sizes, found: FoundSweeps) -> None:
    size = int(sizes.gigabytes * 1e9) // 8
    notebook = swept_notebook("import numpy as np", f"held = np.ones({size})", PRIVATE)
    for _ in range(sizes.rounds):
        request_id, _ = run_sweep(site, notebook, 2)
        first = list(executed(trial_notebooks(site, request_id, 2)[0]))
        memory = json.loads(first[-1].outputs[0].text)
        found.fork.append(1000 * (moment(first[-1], "busy") - moment(first[-2], "idle")))
        found.private.append(memory["Private_Dirty"] / 1e3)
        found.resident.append(memory["Rss"] / 1e3)
        report.note(
            f"fork {found.fork[-1]:.0f} ms, private {found.private[-1]:.0f} MB of "
            f"{found.resident[-1]:.0f} MB"
        )


def rows(found: FoundSweeps, sizes: Sizes, line: str) -> list[Row]:
    def row(name: str, ours: Sequence[float], goal: report.Goal, unit: str) -> Row:
        return Row(name=name, ours=middle(ours), goal=goal, unit=unit, command=line)

    def ideal(peer: Sequence[float]) -> NotWorseThan:
        return NotWorseThan(peer=middle(peer), times=IDEAL_TIMES)

    imported = imports().split("\n")[0]
    return [
        row(
            f"device time of {sizes.trials} trials that sleep, beside the ideal of the stage tree",
            [1000 * each for each in found.sleeping],
            ideal([1000 * each for each in found.sleeping_ideal]),
            "ms",
        ),
        row(
            f"device time of {sizes.trials} trials that compute, beside that ideal",
            [1000 * each for each in found.computing],
            ideal([1000 * each for each in found.computing_ideal]),
            "ms",
        ),
        row(
            f"{sizes.trials} trials after `{imported}` and 1 s, beside papermill one by one",
            found.ours,
            FasterThan(peer=middle(found.papermill), times=ONE_BY_ONE),
            "ms",
        ),
        row(
            "the same two at a time, beside papermill two at a time",
            found.ours_by_two,
            FasterThan(peer=middle(found.papermill_by_two), times=TWO_AT_A_TIME),
            "ms",
        ),
        row(
            f"fork of a kernel that holds {sizes.gigabytes:g} GB, to its first cell",
            found.fork,
            AtMost(limit=FORK_MILLISECONDS),
            "ms",
        ),
        row(
            "private memory of that fork, beside its resident memory",
            found.private,
            NotWorseThan(peer=middle(found.resident), times=0.1),
            "MB",
        ),
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("What a sweep costs.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each kind (3)")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of a sweep (16)")
    options = parser.parse_args(words)
    line = report.command_line("tests.benchmarks.sweep", *words)
    found = FoundSweeps()
    free = psutil.virtual_memory().available / 1e9 - SPARE_GIGABYTES
    sizes = Sizes(
        trials=options.trials,
        rounds=options.rounds,
        gigabytes=min(GIGABYTES, max(0.1, round(free, 1))),
    )
    with ExitStack() as stack, report.measuring("an installation"):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-sweep-")))
        site = stack.enter_context(installation(folder / "state", "--simulated-devices", "1"))
        by_two = found.ours_by_two, found.papermill_by_two
        with report.measuring("papermill", found.ours, found.papermill, *by_two):
            measure_papermill(site, folder, sizes, found)
        with report.measuring("trials that sleep", found.sleeping, found.sleeping_ideal):
            measure_device_time(site, SLEEP, sizes, found.sleeping, found.sleeping_ideal)
        with report.measuring("trials that compute", found.computing, found.computing_ideal):
            measure_device_time(site, SPIN, sizes, found.computing, found.computing_ideal)
        with report.measuring("forks", found.fork, found.private, found.resident):
            measure_fork(site, sizes, found)
    return report.finish(rows(found, sizes, line), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
