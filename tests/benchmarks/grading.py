"""How fast a class is graded: the grading sandbox beside ``nbgrader autograde``.

Submissions of nbgrader's example assignment ps1, in batches: the same submissions by both, each in
a process and into a gradebook of its own, start-up included on both sides. Every submission is
another text, so nothing can be remembered from one to the next. Scores are compared cell by cell.

With ``--image carrel/datascience`` the same once more in containers of that image, which has the
numpy that ps1 needs, of the engine at DOCKER_HOST.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from math import ceil
from pathlib import Path

from carrel.courses.grading import duration
from carrel.courses.model.records import GradingPace
from carrel.courses.releases import throughput
from carrel.courses.releases.solution_check import check_release
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxLimits

from ..courses.grading import golden, ps1
from . import report
from .grading_run import APART, sandboxes
from .report import AtMost, Beside, FasterThan, Row

COUNT, BATCH = 60, 60
DISTINCT = tuple(name for name in ps1.SOLUTIONS if name != "no end")
"""That one spends its time on the text of tracebacks, here as there."""
FASTER = 5
ESTIMATE_PERCENT = 25
LOCAL = ""
"""In the place of an image: the sandboxes of this machine."""
_ROOT = Path(__file__).parents[2]

Submissions = Mapping[str, Mapping[str, bytes]]


@dataclass(slots=True)
class Found:
    """Of each batch seconds and percent by image; cells whose scores differ."""

    ours: dict[str, list[float]]
    off: dict[str, list[float]]
    nbgrader: list[float] = field(default_factory=list)
    cells: int = 0
    differing: int = 0


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


def batches(whole: Submissions, most: int) -> Sequence[Submissions]:
    """Of about the same size."""
    names = list(whole)
    size = ceil(len(names) / ceil(len(names) / most))
    return [
        {name: whole[name] for name in names[at : at + size]} for at in range(0, len(names), size)
    ]


def measure(count: int, most: int, images: Sequence[str]) -> Found:
    found = Found({image: [] for image in images}, {image: [] for image in images})
    paces = {image: _released(image) for image in images}
    with tempfile.TemporaryDirectory() as place:
        for number, batch in enumerate(batches(submissions(count), most)):
            theirs = Path(place, f"theirs{number}")
            golden.lay_out(theirs, "ps1", ps1.source(), batch)
            peer = partial(golden.nbgrader, theirs, "autograde", "ps1")
            found.nbgrader.append(_seconds(peer))
            report.note(f"batch {number}: {len(batch)} by nbgrader {found.nbgrader[-1]:.1f} s")
            scores = golden.autograded(theirs, "ps1")
            for image, (pace, apart) in paces.items():
                ours = Path(place, f"ours{number}{len(image)}")
                golden.lay_out(ours, "ps1", ps1.source(), batch)
                (ours / "gradebook.db").unlink()
                (ours / APART).write_text(json.dumps(apart), encoding="utf-8")
                took = _seconds(partial(_graded, ours, image))
                expected = duration.expected(pace, len(batch))
                found.ours[image].append(took)
                found.off[image].append(abs(expected - took) / took * 100)
                _compare(scores, golden.autograded(ours, "ps1"), found)
                report.note(
                    f"batch {number}: {len(batch)} in {image or 'sandboxes of this machine'} "
                    f"{took:.1f} s, expected {expected:.1f} s"
                )
    return found


def _graded(folder: Path, image: str) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.grading_run", str(folder), image]
    subprocess.run(command, cwd=_ROOT, check=True, stderr=subprocess.DEVNULL)


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _released(image: str) -> tuple[GradingPace, Mapping[str, list[str]]]:
    """What a release finds: how fast grading is here, and which tests run apart."""
    prepared, limits = prepare("ps1", ps1.source()), SandboxLimits()
    engine = sandboxes(prepared, image)
    try:
        start = throughput.seconds_to_open(engine, limits)
        check = check_release(engine, prepared, ps1.source(), limits=limits)
        pace = throughput.measured(
            *(engine, check.key, prepared, ps1.source()),
            limits=limits,
            start=start,
            one=check.seconds_each,
        )
    finally:
        engine.close()
    return pace, {each.name: sorted(each.apart) for each in check.key.notebooks}


def _compare(theirs: golden.Scores, ours: golden.Scores, found: Found) -> None:
    for student, cells in theirs.items():
        for grade_id, score in cells.items():
            found.cells += 1
            found.differing += ours.get(student, {}).get(grade_id) != score


def rows(found: Found, count: int, command: str) -> Sequence[Row]:
    def row(name: str, ours: float, goal: FasterThan | AtMost | Beside, unit: str) -> Row:
        return Row(name=name, ours=ours, goal=goal, unit=unit, command=command)

    def off(image: str) -> float:
        return sorted(found.off[image])[len(found.off[image]) // 2]

    each = {image: sum(seconds) / count * 1000 for image, seconds in found.ours.items()}
    theirs = sum(found.nbgrader) / count * 1000
    made = [
        row("one submission", each.pop(LOCAL), FasterThan(peer=theirs, times=FASTER), "ms"),
        row("the first estimate against the end", off(LOCAL), AtMost(limit=ESTIMATE_PERCENT), "%"),
    ]
    for image, ours in each.items():
        made += [
            row(f"one submission in containers of {image}", ours, Beside(peer=theirs), "ms"),
            row("their first estimate", off(image), AtMost(limit=ESTIMATE_PERCENT), "%"),
        ]
    cells = f"cells of {found.cells} with another score"
    return [*made, row(cells, found.differing, AtMost(limit=0), "")]


def main() -> int:
    parser = report.parser("The grading sandbox beside nbgrader autograde.")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--batch", type=int, default=BATCH, help="submissions at most (60)")
    parser.add_argument("--image", help="in its containers, too: carrel/datascience")
    options = parser.parse_args()
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    images = [LOCAL, *([options.image] if options.image else [])]
    found = measure(options.count, options.batch, images)
    words = [f"--count {options.count}", f"--batch {options.batch}"]
    if options.image:
        words.append(f"--image {options.image}")
    command = report.command_line("tests.benchmarks.grading", *words)
    return report.finish(rows(found, options.count, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
