"""The log that can be proved at many lines: appending beside the plain write, and proofs."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, text

from carrel.courses.model.records import Assignment, Course, Folder, NewSubmission
from carrel.courses.store import SqlCourseStore
from carrel.courses.store import sql as course_sql
from carrel.hub.proofs.verification import read_proof, verify_proof
from carrel.hub.provenance.signature import SigningKey
from carrel.hub.records.identity import Identity
from carrel.hub.store import SqlStore, open_store
from carrel.hub.transparency.log_store import SqlLogStore
from carrel.hub.transparency.service import TransparencyLog

from ..contracts.store_kit import furnish, job, running
from . import report
from .report import AtMost, NotWorseThan, Row

NOW = 1_780_000_000.0
LINES = 1_000_000
WRITES = 50
ROUNDS = 100
PROOFS = 100
MOST_TIMES = 1.3
MOST_MICROSECONDS = 10_000.0


def rows(lines: int, command: str) -> list[Row]:
    """Return the rows of a log of a ledger with so many lines; notes have further figures."""
    with _site() as (store, log):
        running(store, job("ran"), "D0")
        store.transactions.write(lambda c: _fill_ledger(c, lines))
        entered = _seconds(lambda: _enter_all(log))
        head = _seconds(log.make_head)
        report.note(f"growth: {entered / lines * 1e6:.0f} µs a line, head {head * 1000:.0f} ms")
        checked = _verification(log, lines)
        whole = _seconds(lambda: _verify_all(log))
        report.note(f"carrel audit verify: {whole:.0f} s")
        plain, logged = _appending(store, log)
    beside = NotWorseThan(peer=plain, times=MOST_TIMES)
    return [
        Row(
            name=f"a submission with its line, in a log of {lines:,} lines",
            ours=logged,
            goal=beside,
            unit="µs",
            command=command,
        ),
        Row(
            name=f"a proof of one of {lines:,} lines, verified",
            ours=checked,
            goal=AtMost(limit=MOST_MICROSECONDS),
            unit="µs",
            command=command,
        ),
    ]


def _verification(log: TransparencyLog, lines: int) -> float:
    """Return the microseconds that verify a proof, without the time that makes it."""
    made, checked = [], []
    for number in range(PROOFS):
        at = float(1 + number * (lines - 2) // PROOFS)
        begun = time.perf_counter()
        document = log.prove_usage(Identity(name="ada"), since=at + 0.2, until=at + 0.8)
        made.append(time.perf_counter() - begun)
        content = document.model_dump_json()
        begun = time.perf_counter()
        proved = verify_proof(read_proof(content), log.key.public)
        checked.append(time.perf_counter() - begun)
        assert len(proved.lines) == 1
    report.note(
        f"proof of a line, made: median {statistics.median(made) * 1000:.1f} ms, "
        f"{len(content):,} bytes; verified: most {max(checked) * 1000:.2f} ms"
    )
    return statistics.median(checked) * 1e6


def _appending(store: SqlStore, log: TransparencyLog) -> tuple[float, float]:
    """Return the median microseconds of a submission without and with its line.

    Rounds of both alternate and are short, so that other work on the machine slows both alike.
    The lines of a round are entered at its end.
    """
    courses = SqlCourseStore(store.transactions)
    courses.put_course(Course(name="lab", created_at=NOW, created_by="tea"))
    courses.put_assignment(Assignment(course="lab", name="ps1"))

    def write(first: int) -> None:
        for number in range(first, first + WRITES):
            files = Folder(sha256=f"{number:064x}", files=())
            person = f"s{number}"
            courses.submit(
                NewSubmission(course="lab", assignment="ps1", person=person, at=NOW, files=files)
            )

    def logged(first: int) -> None:
        write(first)
        _enter_all(log)

    plain: list[float] = []
    with_log: list[float] = []
    processor = {"plain": 0.0, "with its line": 0.0}
    queue = course_sql.queue_line
    for turn in range(ROUNDS):
        course_sql.queue_line = lambda *_: None
        used = time.process_time()
        plain.append(_seconds(lambda turn=turn: write((2 * turn) * WRITES)))
        processor["plain"] += time.process_time() - used
        course_sql.queue_line = queue
        used = time.process_time()
        with_log.append(_seconds(lambda turn=turn: logged((2 * turn + 1) * WRITES)))
        processor["with its line"] += time.process_time() - used
    each = 1e6 / WRITES
    for name, found in (("plain", plain), ("with its line", with_log)):
        low, _, high = (value * each for value in statistics.quantiles(found))
        used = processor[name] * each / ROUNDS
        report.note(
            f"{name}: quartiles {low:.0f} and {high:.0f} µs, {used:.0f} µs of processor time"
        )
    return statistics.median(plain) * each, statistics.median(with_log) * each


def _enter_all(log: TransparencyLog) -> None:
    while log.enter_lines():
        pass


def _verify_all(log: TransparencyLog) -> None:
    found: list[object] = []
    log.store.verify((), log.read_head, lambda _: None, found.append)
    assert not found


@contextmanager
def _site() -> Iterator[tuple[SqlStore, TransparencyLog]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(Path(folder) / "carrel.db")) as store,
    ):
        furnish(store)
        log_store = SqlLogStore(store.transactions)
        yield store, TransparencyLog(log_store, SigningKey.generate(), "bench", lambda: NOW)


def _fill_ledger(connection: Connection, lines: int) -> None:
    """Add lines of a second each to the ledger, and queue them."""
    lease = connection.scalar(text("SELECT id FROM leases"))
    connection.execute(
        text(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :lines) "
            "INSERT INTO ledger (lease_id, request_id, epoch, owner, group_name, devices, "
            "starts_at, ends_at, device_seconds) "
            "SELECT :lease, 'j-ran', 1, 'ada', 'lab', 1, i, i + 1, 1 FROM n"
        ),
        {"lines": lines, "lease": lease},
    )
    connection.execute(
        text(
            "INSERT INTO log_queue (source, row_key, queued_at) "
            "SELECT 'ledger', CAST(id AS TEXT), 0 FROM ledger ORDER BY id"
        )
    )


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main(words: Sequence[str]) -> int:
    parser = report.parser("The log that can be proved at many lines.")
    parser.add_argument("--lines", type=int, default=LINES, help="of a ledger (1,000,000)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.log_proofs", *words)
    return report.finish(rows(options.lines, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
