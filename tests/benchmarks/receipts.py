"""What a receipt costs a job, and what an import of the job files of other platforms takes.

Processor time includes that of child processes (git), so that other programs on the machine do not
distort the figures. Each row has a function of its own. The log that can be proved has a benchmark
of its own, ``log_proofs``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from carrel.hub.receipts.background import ReceiptWriter
from carrel.hub.receipts.ended_jobs import EndedJobs
from carrel.hub.store import SqlStore
from carrel.spawners.runner.attempt import environment
from carrel.spawners.runner.attempt.observed_inputs import ObservedInputs

from ..hub.notebooks import notebook
from ..hub.receipts.ended_jobs import ended
from ..hub.requests.samples import command, job
from ..hub.web.site import made_site
from ..shared_data import shared_path
from . import report
from .report import AtMost, Row

ROUNDS = 20
LIMIT = AtMost(limit=50.0)
IMPORT_LIMIT = AtMost(limit=5000.0)
SAMPLES = 50
FOLDERS = 255
FILES = 20
FILE_BYTES = 512 << 10


def spent(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of a call, its child processes included."""
    before = _processor_seconds()
    work()
    return 1000 * (_processor_seconds() - before)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def runner(rounds: int, *, git: bool) -> list[float]:
    """Observe a home with 255 folders, and hash 20 files of 512 KiB that were read."""
    with tempfile.TemporaryDirectory(prefix="carrel-receipts-") as made:
        home = Path(made).resolve()
        for number in range(FOLDERS):
            (home / f"data-{number:03}").mkdir()
        files = [home / f"data-{number:03}" / "part.bin" for number in range(FILES)]
        for file in files:
            file.write_bytes(bytes(FILE_BYTES))
        if git:
            for words in (("init", "-q"), ("add", "."), (*_AUTHOR, "commit", "-qm", "first")):
                subprocess.run(["git", "-C", made, *words], check=True)
        return [_observed(home, files) for _ in range(rounds + 1)][1:]


_AUTHOR = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")


def _observed(home: Path, files: Sequence[Path]) -> float:
    observed: list[ObservedInputs] = []

    def begin() -> None:
        environment.git_state(home, home)
        observed.append(ObservedInputs({"home": home}, home))

    def end() -> None:
        observed[0].as_json()
        environment.described()

    begun = spent(begin)
    for file in files:
        file.read_bytes()
    return begun + spent(end)


def service(rounds: int, body: Any, **files: str) -> list[float]:
    """Write, sign and store the receipt of a job that has ended, as the thread of the service does.

    Args:
        files: that the job has left.
    """
    with tempfile.TemporaryDirectory(prefix="carrel-receipts-") as made, made_site(Path(made)) as s:
        store = cast(SqlStore, s.context.store)
        writer = ReceiptWriter(EndedJobs(store.transactions), s.world.web.receipts)
        writer.work()

        def one() -> float:
            ended(s, body, **files)
            return spent(writer.work)

        return [one() for _ in range(rounds + 1)][1:]


def large_notebook(rounds: int) -> list[float]:
    return service(rounds, job(devices=0), output_ipynb=notebook(f"print({'1' * (1 << 20)!r})"))


def imports(rounds: int) -> list[float]:
    """Read all samples with ``carrel import --dry-run``, the start of Python included."""
    samples = shared_path("samples")
    assert len(list(samples.rglob("*.y*ml"))) == SAMPLES, "CARREL_SHARED names no such folder"
    words = ("import", str(samples), "--dry-run", "--skip-refused", "--json")

    def read() -> None:
        command = (sys.executable, "-m", "carrel.hub.cli", *words)
        done = subprocess.run(command, capture_output=True, check=False)
        # 1: the malformed samples are refused.
        assert done.returncode == 1, done.stderr.decode()
        assert len(done.stdout.splitlines()) == SAMPLES

    begun = time.perf_counter()
    found = [spent(read) for _ in range(rounds)]
    report.note(f"import: {(time.perf_counter() - begun) / rounds:.1f} s elapsed each")
    return found


ROWS: dict[str, Callable[[int], list[float]]] = {
    "runner: 256 folders watched, 20 files of 512 KiB hashed": lambda n: runner(n, git=False),
    "runner: the same in a git repository": lambda n: runner(n, git=True),
    "service: receipt of a notebook of 1 MiB, written and signed": large_notebook,
    "service: receipt of a command, written and signed": lambda n: service(n, command()),
    f"carrel import: all {SAMPLES} samples": imports,
}


def main(words: Sequence[str]) -> int:
    parser = report.parser("What a receipt costs a job.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="receipts for each row (20)")
    options = parser.parse_args(words)
    line = report.command_line("tests.benchmarks.receipts", *words)
    rows = []
    for name, measure in ROWS.items():
        found: list[float] = []
        with report.measuring(name, found):
            found += measure(options.rounds)
        report.note(f"{name}: " + ", ".join(f"{value:.1f}" for value in found) + " ms")
        goal = IMPORT_LIMIT if measure is imports else LIMIT
        rows.append(Row(name=name, ours=report.middle(found), goal=goal, unit="ms", command=line))
    return report.finish(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
