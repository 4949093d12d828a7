"""What a job costs: a trivial notebook beside papermill, a long one beside nbclient, memory.

One installation on CPU is brought up for it and taken down again.

* submit: from the POST of a trivial notebook to its terminal state, beside the
  ``papermill`` command on the same notebook, by turns. The service's own clock says when it
  ended; both clocks are this machine's.
* runtime: a notebook whose cells compute and print, from the first cell's start to the last
  one's end as its kernel reports them, as a job and with bare nbclient, by turns; and the same
  with large variables, which the job saves after its cells.
* memory at rest: resident memory of hub and service beside that of a plain JupyterHub.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx
import nbformat
import psutil
from nbclient import NotebookClient

from ..e2e.support import Installation, eventually, installation
from ..ports import free_port
from . import report
from .report import NotWorseThan, Row, middle

STUDENT = "student1"
PAIRS, LONG_PAIRS = 20, 10
CELLS, SECONDS = 60, 30.0
HELD_MIB = 200
LONG_SECONDS = 900.0
SETTLE_SECONDS = 5.0
ASK_SECONDS = 1.0
MIB = 1 << 20
ENDED = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
COMPUTE = """
import time
ends = time.process_time() + {seconds}
n = 0
while time.process_time() < ends:
    n += sum(range(1000)) % 7
    if n % 200 == 0:
        print(n)
print("cell {number}:", n)
"""


@dataclass(slots=True)
class Found:
    """Milliseconds and MiB, one entry a run; empty where it could not be measured."""

    ours: list[float] = field(default_factory=list)
    papermill: list[float] = field(default_factory=list)
    job: list[float] = field(default_factory=list)
    nbclient: list[float] = field(default_factory=list)
    large_job: list[float] = field(default_factory=list)
    large_nbclient: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    hub_memory: list[float] = field(default_factory=list)


def rows(found: Found, command: str) -> list[Row]:
    def row(name: str, ours: Sequence[float], goal: NotWorseThan, unit: str) -> Row:
        return Row(name=name, ours=middle(ours), goal=goal, unit=unit, command=command)

    def beside(peer: Sequence[float], times: float, or_more: float = 0.0) -> NotWorseThan:
        return NotWorseThan(peer=middle(peer), times=times, or_more=or_more)

    return [
        row("POST to terminal state, median", found.ours, beside(found.papermill, 1.5), "ms"),
        row("runtime of the cells, median", found.job, beside(found.nbclient, 1.01), "ms"),
        row(
            f"the same with {HELD_MIB} MiB of variables",
            found.large_job,
            beside(found.large_nbclient, 1.01),
            "ms",
        ),
        row("hub and service at rest", found.memory, beside(found.hub_memory, 1.0, 200), "MiB"),
    ]


def made_notebook(*sources: str) -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made: nbformat.NotebookNode = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel}
    )
    return made


def run_job(
    site: Installation, notebook: nbformat.NotebookNode, within: float, every: float = 0.05
) -> tuple[str, float]:
    """Its id, and the milliseconds from the POST to its terminal state."""
    begin = time.time()
    body = {
        "kind": "job",
        "group": "cs101",
        "notebook": {"name": "n.ipynb", "content": nbformat.writes(notebook)},
    }
    answer = site.api("POST", "/requests", user=STUDENT, json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    request_id = str(answer.json()["id"])
    ended = site.wait_for(request_id, *ENDED, user=STUDENT, within=within, every=every)
    assert ended["state"] == "succeeded", ended
    return request_id, 1000 * (float(ended["ended_at"]) - begin)


def run_papermill(folder: Path) -> float:
    program = Path(sys.prefix) / "bin" / "papermill"
    begin = time.perf_counter()
    subprocess.run(
        [str(program), str(folder / "trivial.ipynb"), str(folder / "out.ipynb")],
        check=True,
        capture_output=True,
    )
    return 1000 * (time.perf_counter() - begin)


def cell_milliseconds(executed: nbformat.NotebookNode) -> float:
    """From the first cell's start to the last one's end, in the kernel's own words."""

    def at(cell: nbformat.NotebookNode, state: str) -> float:
        return datetime.fromisoformat(
            cell.metadata.execution[f"iopub.status.{state}"].replace("Z", "+00:00")
        ).timestamp()

    return 1000 * (at(executed.cells[-1], "idle") - at(executed.cells[0], "busy"))


def measure_trivial(site: Installation, folder: Path, pairs: int, found: Found) -> None:
    """By turns; the pair before the first only warms."""
    notebook = made_notebook("print('trivial')")
    nbformat.write(notebook, folder / "trivial.ipynb")
    for pair in range(pairs + 1):
        ours, theirs = run_job(site, notebook, 60.0)[1], run_papermill(folder)
        if pair:
            found.ours.append(ours)
            found.papermill.append(theirs)
            report.note(f"pair {pair} of {pairs}: ours {ours:.0f} ms, papermill {theirs:.0f} ms")


def long_notebook(cells: int, seconds: float, held_mib: int = 0) -> list[str]:
    sources = [COMPUTE.format(seconds=seconds / cells, number=n) for n in range(1, cells + 1)]
    held = f"held = bytes(range(256)) * {4096 * held_mib}"
    return [held, *sources] if held_mib else sources


def measure_runtime(
    site: Installation, sources: list[str], pairs: int, ours: list[float], theirs: list[float]
) -> None:
    for pair in range(1, pairs + 1):
        # Asked for seldom: the cores are there for the notebook, as they are for nbclient's.
        request_id, _ = run_job(site, made_notebook(*sources), LONG_SECONDS, ASK_SECONDS)
        answer = site.api("GET", f"/requests/{request_id}/output", user=STUDENT)
        assert answer.is_success, answer.text
        ours.append(cell_milliseconds(nbformat.reads(answer.text, as_version=4)))
        bare = made_notebook(*sources)
        NotebookClient(bare).execute()
        theirs.append(cell_milliseconds(bare))
        report.note(f"pair {pair} of {pairs}: job {ours[-1]:.0f} ms, nbclient {theirs[-1]:.0f} ms")


def measure_memory(site: Installation, folder: Path, found: Found) -> None:
    """Resident memory, some seconds after the last request."""
    time.sleep(SETTLE_SECONDS)
    ours = sum(resident(site.pid_of(part)) for part in ("hub", "service"))
    with plain_hub(folder) as hub:
        time.sleep(SETTLE_SECONDS)
        found.hub_memory.append(resident(hub))
    found.memory.append(ours)


def resident(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / MIB


@contextmanager
def plain_hub(folder: Path) -> Iterator[int]:
    """JupyterHub as it comes, without its proxy (a process of its own on both sides)."""
    folder.mkdir()
    port = free_port()
    (folder / "jupyterhub_config.py").write_text(
        "from jupyterhub.proxy import Proxy\n"
        "class NoProxy(Proxy):\n"
        "    async def add_route(self, routespec, target, data): ...\n"
        "    async def delete_route(self, routespec): ...\n"
        "    async def get_all_routes(self): return {}\n"
        f"c = get_config()\nc.JupyterHub.hub_port = {port}\n"
        "c.JupyterHub.proxy_class = NoProxy\nc.Proxy.should_start = False\n"
        f"c.JupyterHub.bind_url = 'http://127.0.0.1:{free_port()}'\n"
        "c.JupyterHub.authenticator_class = 'dummy'\nc.Authenticator.allow_all = True\n"
    )
    programs = str(Path(sys.prefix) / "bin")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [f"{programs}/jupyterhub"],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])},
        )
    try:
        eventually(lambda: answers(f"http://127.0.0.1:{port}/hub/api"), "a plain hub")
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def main(words: Sequence[str]) -> int:
    parser = report.parser("What a job costs.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="trivial notebooks (20)")
    parser.add_argument("--long-pairs", type=int, default=LONG_PAIRS, help="long ones (10)")
    parser.add_argument("--cells", type=int, default=CELLS, help="of a long one (60)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a long one (30)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.submit", *words)
    found = Found()
    with ExitStack() as stack, report.measuring("an installation"):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-submit-")))
        site = stack.enter_context(installation(folder / "state", "--simulated-devices", "1"))
        with report.measuring("memory", found.memory, found.hub_memory):
            measure_memory(site, folder / "plain", found)
        with report.measuring("trivial notebooks", found.ours, found.papermill):
            measure_trivial(site, folder, options.pairs, found)
        with report.measuring("long notebooks", found.job, found.nbclient):
            sources = long_notebook(options.cells, options.seconds)
            measure_runtime(site, sources, options.long_pairs, found.job, found.nbclient)
        with report.measuring("large variables", found.large_job, found.large_nbclient):
            sources = long_notebook(options.cells, options.seconds, HELD_MIB)
            large = found.large_job, found.large_nbclient
            measure_runtime(site, sources, options.long_pairs, *large)
    return report.finish(rows(found, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
