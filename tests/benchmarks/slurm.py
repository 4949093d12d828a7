"""What Carrel costs on a Slurm cluster, beside Slurm and batchspawner alone.

A cluster of two nodes with simulated devices is started on this machine, and an installation on
it; both are taken down again.

* job: from the submission until Slurm runs the batch script of the job (Carrel's notes the time in
  its prologue), and to the first command of the job, for which Carrel's runner has started:
  ``carrel``'s REST API beside ``sbatch``, by turns.
* session: from the POST to JupyterHub to the ``ready`` event, on a lease and with batchspawner's
  own ``SlurmSpawner``, by turns.
* queue: with 5,000 requests that wait, the service's share of a core, and how often it asks
  slurmctld for jobs and nodes in each cycle of a second (``sdiag``).
* short jobs: how many of many jobs were lost, ran twice, or left something in Slurm's queue.
* sweep: how many of many trials of one sweep, two at a time, were lost, ran twice, or have no
  result; and how long the job ran, which is one for Slurm.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import nbformat
import psutil

from ..e2e.support import Installation, eventually, installation
from ..faults.audit import read
from ..slurm.cluster import DEVICES, NODES, SlurmCluster, slurm_cluster
from ..spawners.notebooks import notebook
from . import filled_store, report
from .report import AtMost, NotWorseThan, Row, middle
from .spawn import OURS, PLAIN, STUDENTS, Hub

STUDENT = STUDENTS[0]
PAIRS, QUEUED, JOBS, TRIALS = 15, 5000, 1000, 1000
LONGEST_SECONDS = 120.0
RUNS = "runs"
"""The file in which the prologue notes the time."""
REST_SECONDS = 30.0
_ASKED = re.compile(r"(REQUEST_JOB_INFO|REQUEST_NODE_INFO)\s.*count:(\d+)")


@dataclass(slots=True)
class Found:
    """Milliseconds, one entry a run; empty where it could not be measured."""

    running: list[float] = field(default_factory=list)
    jobs: list[float] = field(default_factory=list)
    plain_jobs: list[float] = field(default_factory=list)
    sessions: list[float] = field(default_factory=list)
    plain_sessions: list[float] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)
    wrong_trials: list[float] = field(default_factory=list)
    sweeps: list[float] = field(default_factory=list)


def rows(found: Found, command: str) -> list[Row]:
    def row(name: str, ours: Sequence[float], goal: AtMost | NotWorseThan, unit: str) -> Row:
        return Row(name=name, ours=middle(ours), goal=goal, unit=unit, command=command)

    sbatch = NotWorseThan(peer=middle(found.plain_jobs), times=1.1, or_more=200)
    spawner = NotWorseThan(peer=middle(found.plain_sessions), times=1.05, or_more=150)
    return [
        row("submission to running, median", found.running, sbatch, "ms"),
        row("submission to first command, median", found.jobs, sbatch, "ms"),
        row("session spawn, median", found.sessions, spawner, "ms"),
        row("service with a long queue, share of a core", found.share, AtMost(limit=10), "%"),
        row("questions to slurmctld in a second", found.asked, AtMost(limit=2), ""),
        row("short jobs lost, twice or left over", found.wrong, AtMost(limit=0), ""),
        row("trials lost or twice", found.wrong_trials, AtMost(limit=0), ""),
        row("time of the sweep for each trial", found.sweeps, AtMost(limit=1000), "ms"),
    ]


def measure_jobs(site: Installation, cluster: SlurmCluster, pairs: int, found: Found) -> None:
    """By turns; the pair before the first only warms.

    slurmctld looks at its queue once a second: each submission comes at another moment of it.
    """
    moments = Random(1)  # noqa: S311  # no secret
    for pair in range(pairs + 1):
        time.sleep(moments.random())
        running, ours = ours_runs(site, cluster)
        time.sleep(moments.random())
        theirs = plain_runs(site, cluster)
        if pair:
            found.running.append(running)
            found.jobs.append(ours)
            found.plain_jobs.append(theirs)
            report.note(
                f"pair {pair} of {pairs}: runs after {running:.0f} ms, first command after "
                f"{ours:.0f} ms, sbatch {theirs:.0f} ms"
            )


def noting(path: Path) -> str:
    """A command that writes the time, all at once; several may do so at a time."""
    written = f"{shlex.quote(str(path))}.$$"
    return f"date +%s.%N > {written}; mv {written} {shlex.quote(str(path))}"


def ours_runs(site: Installation, cluster: SlurmCluster) -> tuple[float, float]:
    """Return milliseconds until the batch script ran, and until the first command."""
    home = site.state / "homes" / STUDENT
    (site.state / RUNS).unlink(missing_ok=True)
    begin = time.time()
    request = submit(site, noting(home / "began"))
    took = noted(home / "began", begin)
    ended = site.wait_for(request, "succeeded", user=STUDENT, within=LONGEST_SECONDS)
    assert ended["lease"]["devices"], "it had a device"
    eventually(lambda: not cluster.run("squeue", "--noheader").strip(), "the job has ended")
    return noted(site.state / RUNS, begin), took


def plain_runs(site: Installation, cluster: SlurmCluster) -> float:
    path = site.state / "plain"
    begin = time.time()
    cluster.submit("--gres=gpu:sim:1", "--mem=512M", script=noting(path))
    took = noted(path, begin)
    # Slurm starts no job at its submission while another one completes.
    eventually(lambda: not cluster.run("squeue", "--noheader").strip(), "the job has ended")
    return took


def noted(path: Path, begin: float) -> float:
    eventually(path.exists, "the job has noted when it began", within=LONGEST_SECONDS)
    took = 1000 * (float(path.read_text()) - begin)
    path.unlink()
    return took


def submit(site: Installation, script: str, *, devices: int = 1) -> str:
    """Submit a command; as a client does, wait when the service has had too many calls."""
    body = {"group": "cs101", "devices": devices, "seconds": 600, "command": ["sh", "-c", script]}
    while True:
        answer = site.api("POST", "/requests", user=STUDENT, json=body)
        if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
            break
        time.sleep(float(answer.headers["Retry-After"]))
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return str(answer.json()["id"])


def measure_sessions(site: Installation, pairs: int, found: Found) -> None:
    """By turns, each going first in every second pair; the pair before the first only warms."""
    hub = Hub(site)
    sides = {OURS: found.sessions, PLAIN: found.plain_sessions}
    for pair in range(pairs + 1):
        for server in (OURS, PLAIN) if pair % 2 else (PLAIN, OURS):
            took = hub.spawn(STUDENT, server)
            hub.remove(STUDENT, server)
            if pair:
                sides[server].append(took)
        if pair:
            ours, plain = found.sessions[-1], found.plain_sessions[-1]
            report.note(f"pair {pair} of {pairs}: ours {ours:.0f} ms, batchspawner {plain:.0f} ms")


def measure_short_jobs(site: Installation, cluster: SlurmCluster, jobs: int, found: Found) -> None:
    book = site.state / "homes" / STUDENT / "ran.txt"
    sent = [submit(site, f'echo "$CARREL_REQUEST" >> {book}', devices=0) for _ in range(jobs)]

    def ended() -> bool:
        return all(each.ended for each in read(site.state).requests)

    eventually(ended, "every job ends", within=120 + 5 * jobs, every=2)
    ran = Counter(book.read_text().split())
    wrong = [request for request in sent if ran[request] != 1]
    for request in wrong:
        told = site.request(request, user=STUDENT)
        report.note(f"{request} ran {ran[request]} times: {json.dumps(told)}")
    left = cluster.run("squeue", "-h", "--format=%A").splitlines()
    found.wrong.append(len(wrong) + len(left))


def measure_sweep(site: Installation, trials: int, found: Found) -> None:
    book = site.state / "homes" / STUDENT / "trials.txt"
    cells = (
        "import carrel",
        "with open('trials.txt', 'a') as file:\n    file.write(f'{x}\\n')",
        "carrel.report('loss', x * x)",
    )
    numbers = list(range(1, trials + 1))
    sweep = {"space": {"grid": {"x": numbers}}, "parallel": 2, "objective": "loss"}
    made = nbformat.writes(notebook(*cells, parameters="x = 0"))  # type: ignore[no-untyped-call]
    body = {
        "group": "cs101",
        "devices": 2,
        "seconds": 4 * trials + 120,
        "notebook": {"name": "sweep.ipynb", "content": made},
        "sweep": sweep,
    }
    answer = site.api("POST", "/requests", user=STUDENT, json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    job = str(answer.json()["id"])
    ended = site.wait_for(job, "succeeded", "failed", user=STUDENT, within=4 * trials + 240)
    table = site.api("GET", f"/requests/{job}/trials", user=STUDENT).json()["trials"]
    results = {trial["number"]: trial["reported"].get("loss") for trial in table}
    ran = Counter(map(int, book.read_text().split()))
    found.wrong_trials.append(sum(ran[x] != 1 or results.get(x) != x * x for x in numbers))
    found.sweeps.append(1000 * (ended["ended_at"] - ended["started_at"]) / trials)


def measure_queue(site: Installation, cluster: SlurmCluster, queued: int, found: Found) -> None:
    taken = [
        cluster.submit(f"--gres=gpu:sim:{DEVICES}", f"--nodelist={node}", "--mem=100M")
        for node in NODES
    ]
    eventually(lambda: free_devices(site) == 0, "no device is free")
    filled_store.queue(site.state, STUDENTS, range(queued))
    service = psutil.Process(site.pid_of("service"))
    # The first cycles after it explain each wait once.
    time.sleep(REST_SECONDS)
    before, asked, begin = service.cpu_times(), questions(cluster), time.monotonic()
    time.sleep(REST_SECONDS)
    after, seconds = service.cpu_times(), time.monotonic() - begin
    spent = after.user + after.system - before.user - before.system
    found.share.append(100 * spent / seconds)
    found.asked.append((questions(cluster) - asked) / seconds)
    cluster.run("scancel", *map(str, taken))


def questions(cluster: SlurmCluster) -> int:
    return sum(int(count) for _, count in _ASKED.findall(cluster.run("sdiag")))


def free_devices(site: Installation) -> int:
    return int(site.api("GET", "/pool", user=STUDENT).json()["free"])


@contextmanager
def site_on_a_cluster() -> Iterator[tuple[Installation, SlurmCluster]]:
    with ExitStack() as stack:
        cluster = stack.enter_context(slurm_cluster())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-slurm-")))
        state = folder / "state"
        cluster.site_file(state)
        with (state / "carrel.toml").open("a") as file:
            file.write(f"prologue = {json.dumps(noting(state / RUNS))}\n")
        config = Path(__file__).with_name("slurm_site_config.py")
        shutil.copy(config, state / "jupyterhub_config.py")
        yield stack.enter_context(installation(state, "--engine", "slurm")), cluster


def main(words: Sequence[str]) -> int:
    parser = report.parser("What Carrel costs on a Slurm cluster.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of jobs, and of sessions (15)")
    parser.add_argument("--queued", type=int, default=QUEUED, help="requests that wait (5000)")
    parser.add_argument("--jobs", type=int, default=JOBS, help="short ones (1000)")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of a sweep (1000)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.slurm", *words)
    found = Found()
    with report.measuring("a cluster"), site_on_a_cluster() as (site, cluster):
        with report.measuring("jobs", found.running, found.jobs, found.plain_jobs):
            measure_jobs(site, cluster, options.pairs, found)
        with report.measuring("sessions", found.sessions, found.plain_sessions):
            measure_sessions(site, options.pairs, found)
        with report.measuring("short jobs", found.wrong):
            measure_short_jobs(site, cluster, options.jobs, found)
        with report.measuring("a sweep", found.wrong_trials, found.sweeps):
            measure_sweep(site, options.trials, found)
        with report.measuring("a long queue", found.share, found.asked):
            measure_queue(site, cluster, options.queued, found)
    return report.finish(rows(found, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
