"""Figures of the log that can be proved; each function prints its rows.

python -m tests.benchmarks.log_proofs [--lines N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
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

NOW = 1_780_000_000.0
WRITES = 300
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    chosen = parser.parse_args()
    appending()
    proofs(chosen.lines)


def appending() -> None:
    """Submissions with the queue and the growth of the log, beside the plain writes."""
    with _site() as (store, log):
        courses = _course(store)

        def write(first: int) -> None:
            for number in range(first, first + WRITES):
                new = NewSubmission(
                    course="lab",
                    assignment="ps1",
                    person=f"s{number}",
                    at=NOW,
                    files=Folder(sha256=f"{number:064x}", files=()),
                )
                courses.submit(new)

        def logged(first: int) -> None:
            write(first)
            while log.enter_lines():
                pass

        plain, with_log = [], []
        queue = course_sql.queue_line
        for turn in range(ROUNDS):
            course_sql.queue_line = lambda *_: None
            plain.append(_seconds(lambda turn=turn: write((2 * turn) * WRITES)))
            course_sql.queue_line = queue
            with_log.append(_seconds(lambda turn=turn: logged((2 * turn + 1) * WRITES)))
    before, after = min(plain), min(with_log)
    each = 1000 / WRITES
    print(
        f"appending: plain {before * each:.2f} ms, with log {after * each:.2f} ms a submission, "
        f"{after / before:.2f} times"
    )


def proofs(lines: int) -> None:
    """Growth, proof, verification of a proof and of everything at many lines of a ledger."""
    with _site() as (store, log):
        running(store, job("ran"), "D0")
        store.transactions.write(lambda c: _fill_ledger(c, lines))
        begun = time.perf_counter()
        while log.enter_lines():
            pass
        entered = time.perf_counter() - begun
        head = _seconds(log.make_head)
        who, at = Identity(name="ada"), float(lines // 2)
        made, checked = [], []
        for _ in range(20):
            begun = time.perf_counter()
            document = log.prove_usage(who, since=at + 0.2, until=at + 0.8)
            made.append(time.perf_counter() - begun)
            content = document.model_dump_json()
            begun = time.perf_counter()
            proved = verify_proof(read_proof(content), log.key.public)
            checked.append(time.perf_counter() - begun)
            assert len(proved.lines) == 1
        found: list[object] = []
        whole = _seconds(lambda: log.store.verify((), log.read_head, lambda _: None, found.append))
        assert not found
    print(f"growth: {entered / lines * 1e6:.0f} µs a line, head {head * 1000:.0f} ms")
    print(f"proof of a line at {lines:,} lines: {statistics.median(made) * 1000:.1f} ms")
    print(
        f"verification of a proof: median {statistics.median(checked) * 1000:.2f} ms, "
        f"most {max(checked) * 1000:.2f} ms, {len(content):,} bytes"
    )
    print(f"carrel audit verify: {whole:.1f} s for {lines:,} lines")


@contextmanager
def _site() -> Iterator[tuple[SqlStore, TransparencyLog]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(Path(folder) / "carrel.db")) as store,
    ):
        furnish(store)
        log_store = SqlLogStore(store.transactions)
        yield store, TransparencyLog(log_store, SigningKey.generate(), "bench", lambda: NOW)


def _course(store: SqlStore) -> SqlCourseStore:
    courses = SqlCourseStore(store.transactions)
    courses.put_course(Course(name="lab", created_at=NOW, created_by="tea"))
    courses.put_assignment(Assignment(course="lab", name="ps1"))
    return courses


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


if __name__ == "__main__":
    main()
