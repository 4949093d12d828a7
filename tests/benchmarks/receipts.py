"""What a receipt costs a job: processor time of its runner, and of the service.

Processor time includes that of child processes (git), so that other programs on the machine do not
distort the figures. Each row has a function of its own.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from carrel.spawners.runner.attempt import environment
from carrel.spawners.runner.attempt.observed_inputs import ObservedInputs

from ..hub.doubles import STUDENT1
from ..hub.notebooks import notebook
from ..hub.receipts.ended_jobs import ended
from ..hub.requests.samples import job
from ..hub.web.site import made_site
from . import report
from .report import AtMost, Row

ROUNDS = 20
LIMIT = AtMost(limit=50.0)
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


def service(rounds: int) -> list[float]:
    """Write, sign and store the receipt of a notebook of 1 MiB, at its first request."""
    with tempfile.TemporaryDirectory(prefix="carrel-receipts-") as made, made_site(Path(made)) as s:
        receipts = s.world.web.receipts
        large = notebook(f"print({'1' * (1 << 20)!r})")
        names = [ended(s, job(devices=0), output_ipynb=large) for _ in range(rounds + 1)]
        return [spent(lambda name=name: receipts.crate(STUDENT1, name)) for name in names][1:]


ROWS: dict[str, Callable[[int], list[float]]] = {
    "runner: 256 folders watched, 20 files of 512 KiB hashed": lambda n: runner(n, git=False),
    "runner: the same in a git repository": lambda n: runner(n, git=True),
    "service: receipt of a notebook of 1 MiB, written and signed": service,
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
        ours = statistics.median(found) if found else None
        rows.append(Row(name=name, ours=ours, goal=LIMIT, unit="ms", command=line))
    return report.finish(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
