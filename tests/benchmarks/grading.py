"""How fast a class is graded: the grading sandbox beside ``nbgrader autograde``.

Submissions of nbgrader's example assignment ps1, by turns in batches: the same submissions by
both, each into a gradebook of its own, start-up included on both sides. Every submission is
another text, so nothing can be remembered from one to the next. Scores are compared cell by cell.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from carrel.courses.grading.gradebook import CourseBook
from carrel.courses.grading.release_check import ReleaseCheck, check_release
from carrel.courses.grading.run import Progress, Terms, Work, grade_class
from carrel.courses.grading.submission import SubmissionResult
from carrel.courses.handout import Prepared, prepare
from carrel.courses.sandbox.local.engine import create
from carrel.courses.sandbox.port import CageSettings

from ..courses.grading import golden, ps1
from ..courses.grading.bench import MemoryBench
from . import report
from .report import AtMost, FasterThan, Row

COUNT, BATCH = 60, 20
DISTINCT = tuple(name for name in ps1.SOLUTIONS if name != "no end")
"""That one spends its time on the text of tracebacks, here as there."""
FASTER = 5
ESTIMATE_PERCENT = 25

Submissions = Mapping[str, Mapping[str, bytes]]


@dataclass(slots=True)
class Found:
    """Seconds of each batch; cells whose scores differ."""

    ours: list[float] = field(default_factory=list)
    nbgrader: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    cells: int = 0
    differing: int = 0


class BookBench(MemoryBench):
    """Puts each verdict into a gradebook as it comes, as nbgrader does."""

    def __init__(self, submissions: Submissions, book: CourseBook) -> None:
        super().__init__(submissions)
        self._book = book

    def graded(self, work: Work, result: SubmissionResult) -> None:
        super().graded(work, result)
        self._book.record("ps1", result, files=self.files(work))


def submissions(count: int) -> Submissions:
    """By student; each notebook says whose it is."""
    chosen = islice(cycle(DISTINCT), count)
    return {
        f"student{number}": {
            **ps1.SOLUTIONS[name],
            "problem1.ipynb": ps1.SOLUTIONS[name]["problem1.ipynb"].replace(
                b"def squares(n):", f"# by student{number}\\ndef squares(n):".encode()
            ),
        }
        for number, name in enumerate(chosen)
    }


def batches(whole: Submissions, size: int) -> Sequence[Submissions]:
    names = list(whole)
    return [
        {name: whole[name] for name in names[at : at + size]} for at in range(0, len(names), size)
    ]


def measure(count: int, size: int) -> Found:
    found = Found()
    prepared = prepare("ps1", ps1.source())
    parallel = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as place:
        for number, batch in enumerate(batches(submissions(count), size)):
            theirs, ours = Path(place, f"theirs{number}"), Path(place, f"ours{number}")
            golden.lay_out(theirs, "ps1", ps1.source(), batch)
            began = time.monotonic()
            golden.nbgrader(theirs, "autograde", "ps1")
            found.nbgrader.append(time.monotonic() - began)
            _ours(ours, prepared, batch, parallel, found)
            _compare(golden.autograded(theirs, "ps1"), golden.autograded(ours, "ps1"), found)
            report.note(
                f"batch {number}: {len(batch)} submissions, ours {found.ours[-1]:.1f} s, "
                f"nbgrader {found.nbgrader[-1]:.1f} s, estimate off by {found.off[-1]:.0f} %"
            )
    return found


def _ours(
    folder: Path, prepared: Prepared, batch: Submissions, parallel: int, found: Found
) -> None:
    with CourseBook(folder, "cs101") as book:
        book.save_release(prepared, due=None)
        check = _checked(prepared)
        bench = BookBench(batch, book)
        began = time.monotonic()
        engine = create(CageSettings())
        try:
            terms = Terms(parallel=parallel, expected_seconds=check.seconds_each, files={})
            last = grade_class(engine, check.key, bench, terms)
        finally:
            engine.close()
        found.ours.append(time.monotonic() - began)
    found.off.append(_off(bench.told[0], last))


def _checked(prepared: Prepared) -> ReleaseCheck:
    """At release, long before."""
    engine = create(CageSettings())
    try:
        return check_release(engine, prepared, ps1.source())
    finally:
        engine.close()


def _off(first: Progress, last: Progress) -> float:
    """How far the estimate at the start was from the end, in percent of it."""
    assert first.seconds_left is not None
    return abs(first.seconds_left - last.seconds) / last.seconds * 100


def _compare(theirs: golden.Scores, ours: golden.Scores, found: Found) -> None:
    for student, cells in theirs.items():
        for grade_id, score in cells.items():
            found.cells += 1
            found.differing += ours.get(student, {}).get(grade_id) != score


def rows(found: Found, count: int, command: str) -> Sequence[Row]:
    def row(name: str, ours: float, goal: FasterThan | AtMost, unit: str) -> Row:
        return Row(name=name, ours=ours, goal=goal, unit=unit, command=command)

    each, theirs = sum(found.ours) / count * 1000, sum(found.nbgrader) / count * 1000
    off = sorted(found.off)[len(found.off) // 2]
    return [
        row("one submission", each, FasterThan(peer=theirs, times=FASTER), "ms"),
        row(f"cells of {found.cells} with another score", found.differing, AtMost(limit=0), ""),
        row("the first estimate against the end", off, AtMost(limit=ESTIMATE_PERCENT), "%"),
    ]


def main() -> int:
    parser = report.parser("The grading sandbox beside nbgrader autograde.")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--batch", type=int, default=BATCH)
    options = parser.parse_args()
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    found = measure(options.count, options.batch)
    command = report.command_line(
        "tests.benchmarks.grading", f"--count {options.count}", f"--batch {options.batch}"
    )
    return report.finish(rows(found, options.count, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
