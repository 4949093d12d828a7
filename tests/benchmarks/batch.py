"""How fast notebook jobs run, beside the programs that people run notebooks with.

One installation is brought up for it and taken down again. All run the same notebooks by turns,
with a parameter injected where they can and the output written:

* trivial: one cell that prints. POST to terminal state, beside the ``papermill`` command,
  papermill's API in a process that has imported it, ``jupyter execute`` and nbclient.
* imports: the same with a cell that imports torch; pandas and scikit-learn where there is no torch.
* first cell: from the POST of a trivial notebook to the event that its first cell has started.
* many: small notebooks at once, jobs a second beside the command run two at a time.
* long: the runtime of the cells beside nbclient (``tests.benchmarks.submit`` measures it).

The user's fork server has been started by a job before, as for anybody's second job.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import nbformat
import papermill
from nbclient import NotebookClient

from ..e2e.support import Installation, eventually, installation
from . import report
from .report import AtMost, Beside, FasterThan, Row, middle
from .submit import ENDED, STUDENT, made_notebook, run_job

ROUNDS, IMPORT_ROUNDS, MANY = 15, 7, 200
ASK_SECONDS = 0.25
"""The service's clock says when a job has ended: asking more often only takes its processors."""
OURS = "ours"
TRIVIAL_GOALS = {"papermill command": 8, "papermill API": 6, "jupyter execute": 0, "nbclient": 0}
IMPORT_GOALS = {"papermill command": 0, "papermill API": 10, "jupyter execute": 0, "nbclient": 0}
MANY_GOALS = {"papermill command": 8}
"""How many times faster than each peer a job should be; 0: shown for comparison."""
FIRST_CELL_MILLISECONDS = 150.0

Milliseconds = dict[str, list[float]]


def imports() -> str:
    """Return a line that imports the largest of the usual packages that is installed."""
    if importlib.util.find_spec("torch"):
        return "import torch"
    sklearn = "sklearn.linear_model, sklearn.ensemble"
    return (
        f"import pandas, {sklearn}" if importlib.util.find_spec("pandas") else f"import {sklearn}"
    )


def with_parameter(source: str) -> nbformat.NotebookNode:
    notebook = made_notebook("number = 1", f"{source}\nprint('number', number)")
    notebook.cells[0].metadata["tags"] = ["parameters"]
    return notebook


def command(folder: Path, name: str, *arguments: str) -> None:
    program = Path(sys.prefix) / "bin" / name
    subprocess.run([str(program), *arguments], cwd=folder, check=True, capture_output=True)


def with_papermill(folder: Path) -> None:
    command(folder, "papermill", "in.ipynb", "out.ipynb", "-p", "number", "2")


def with_api(folder: Path) -> None:
    papermill.execute_notebook(
        str(folder / "in.ipynb"), str(folder / "api.ipynb"), {"number": 2}, progress_bar=False
    )


def with_jupyter(folder: Path) -> None:
    command(folder, "jupyter", "execute", "in.ipynb", "--output=execute.ipynb")


def with_nbclient(folder: Path) -> None:
    notebook = nbformat.read(folder / "in.ipynb", as_version=4)
    NotebookClient(notebook).execute()
    nbformat.write(notebook, folder / "nbclient.ipynb")


PEERS: Mapping[str, Callable[[Path], None]] = {
    "papermill command": with_papermill,
    "papermill API": with_api,
    "jupyter execute": with_jupyter,
    "nbclient": with_nbclient,
}


def timed(work: Callable[[Path], None], folder: Path) -> float:
    begin = time.perf_counter()
    work(folder)
    return 1000 * (time.perf_counter() - begin)


def warm(site: Installation, notebook: nbformat.NotebookNode) -> None:
    """Run the notebook until its kernel is forked with everything imported."""
    checked = made_notebook(
        "import sys\nkept = len(sys.modules)", *(c.source for c in notebook.cells)
    )
    checked.cells.append(
        nbformat.v4.new_code_cell("print('imported', len(sys.modules) - kept < 50)")
    )

    def is_warm() -> bool:
        request_id, _ = run_job(site, checked, 120.0)
        answer = site.api("GET", f"/requests/{request_id}/output", user=STUDENT)
        return "imported True" in answer.text

    eventually(is_warm, "a fork server that has imported the packages", within=120.0)


def measure(
    site: Installation, folder: Path, notebook: nbformat.NotebookNode, rounds: int
) -> Milliseconds:
    nbformat.write(notebook, folder / "in.ipynb")
    warm(site, notebook)
    found: Milliseconds = defaultdict(list)
    for number in range(rounds + 1):
        times = {OURS: run_job(site, notebook, 120.0, every=ASK_SECONDS)[1]}
        times |= {name: timed(work, folder) for name, work in PEERS.items()}
        if not number:
            continue  # it only warms
        for name, milliseconds in times.items():
            found[name].append(milliseconds)
        report.note(", ".join(f"{name} {value:.0f}" for name, value in times.items()) + " ms")
    return found


def first_cells(site: Installation, rounds: int) -> list[float]:
    """Milliseconds from the POST to the start of the first cell, by the runner's clock."""
    found = []
    for _ in range(rounds):
        begin = time.time()
        request_id, _ = run_job(site, with_parameter("pass"), 60.0)
        journal = next(site.state.glob(f"outputs/{request_id}/*/events.jsonl"))
        events = map(json.loads, journal.read_text().splitlines())
        started = next(event for event in events if event["kind"] == "cell_started")
        found.append(1000 * (float(started["at"]) - begin))
    return found


def many(site: Installation, folder: Path, number: int, found: Milliseconds) -> None:
    """Jobs that are submitted together, and the command two at a time; seconds for all."""
    notebook = with_parameter("pass")
    nbformat.write(notebook, folder / "in.ipynb")
    begin = time.perf_counter()
    ids = [submit(site, notebook) for _ in range(number)]
    for request_id in ids:
        ended = site.wait_for(request_id, *ENDED, user=STUDENT, within=600.0)
        assert ended["state"] == "succeeded", ended
    found[OURS].append(1000 * (time.perf_counter() - begin))
    peers = max(2, number // 10)
    with ThreadPoolExecutor(2) as pool:
        begin = time.perf_counter()
        list(pool.map(with_numbered_papermill, [(folder, n) for n in range(peers)]))
    found["papermill command"].append(1000 * (time.perf_counter() - begin) * number / peers)


def submit(site: Installation, notebook: nbformat.NotebookNode) -> str:
    body = {
        "kind": "job",
        "group": "cs101",
        "notebook": {"name": "n.ipynb", "content": nbformat.writes(notebook)},
    }
    answer = site.api("POST", "/requests", user=STUDENT, json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return str(answer.json()["id"])


def with_numbered_papermill(work: tuple[Path, int]) -> None:
    folder, number = work
    command(folder, "papermill", "in.ipynb", f"out-{number}.ipynb", "-p", "number", "2")


def rows(kind: str, found: Milliseconds, goals: Mapping[str, float], line: str) -> list[Row]:
    return [
        Row(
            name=f"{kind} beside {name}",
            ours=middle(found[OURS]),
            goal=FasterThan(peer=middle(found[name]), times=times)
            if times
            else Beside(peer=middle(found[name])),
            unit="ms",
            command=line,
        )
        for name, times in goals.items()
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("How fast notebook jobs run.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="trivial notebooks (15)")
    parser.add_argument("--import-rounds", type=int, default=IMPORT_ROUNDS, help="with imports (7)")
    parser.add_argument("--many", type=int, default=MANY, help="small notebooks at once (200)")
    options = parser.parse_args(words)
    line = report.command_line("tests.benchmarks.batch", *words)
    trivial: Milliseconds = defaultdict(list)
    heavy: Milliseconds = defaultdict(list)
    small: Milliseconds = defaultdict(list)
    first: list[float] = []
    with ExitStack() as stack, report.measuring("an installation"):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-batch-")))
        site = stack.enter_context(installation(folder / "state", "--simulated-devices", "1"))
        with report.measuring("trivial notebooks", trivial):
            trivial |= measure(site, folder, with_parameter("pass"), options.rounds)
        with report.measuring("first cells", first):
            first += first_cells(site, options.rounds)
        with report.measuring("notebooks with imports", heavy):
            heavy |= measure(site, folder, with_parameter(imports()), options.import_rounds)
        with report.measuring("many notebooks", small):
            many(site, folder, options.many, small)
    found = [
        *rows("trivial notebook, POST to terminal state,", trivial, TRIVIAL_GOALS, line),
        Row(
            name="POST to the start of the first cell, median",
            ours=middle(first),
            goal=AtMost(limit=FIRST_CELL_MILLISECONDS),
            unit="ms",
            command=line,
        ),
        *rows(f"notebook with `{imports().split(chr(10))[0]}`", heavy, IMPORT_GOALS, line),
        *rows(f"{options.many} small notebooks", small, MANY_GOALS, line),
    ]
    return report.finish(found, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
