"""Write golden.json: the scores of real ``nbgrader autograde``.

    python -m tests.courses.grading.golden

Run it again when nbgrader's version changes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from . import cheats, ps1

PATH = Path(__file__).with_name("golden.json")
Scores = Mapping[str, Mapping[str, float]]


def student(name: str) -> str:
    """Return the student id for the name of a submission."""
    return name.replace(" ", "-").replace("'", "")


def lay_out(
    folder: Path,
    assignment: str,
    source: Mapping[str, bytes],
    submissions: Mapping[str, Mapping[str, bytes]],
) -> None:
    """Create a course folder for nbgrader, with the generated assignment."""
    _write(folder / "source" / assignment, source)
    for name, files in submissions.items():
        _write(folder / "submitted" / student(name) / assignment, files)
    nbgrader(folder, "generate_assignment", assignment)


def nbgrader(folder: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "nbgrader", *arguments, f"--course-dir={folder}"]
    # nbgrader calls alembic by name.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True
    ).returncode


def autograded(folder: Path, assignment: str) -> dict[str, dict[str, float]]:
    """Return the scores in the gradebook by student and cell."""
    from nbgrader.api import Gradebook  # noqa: PLC0415 - seconds

    found: dict[str, dict[str, float]] = {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book:
        for submission in book.assignment_submissions(assignment):
            cells = found.setdefault(submission.student.id, {})
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    cells[grade.name] = grade.score
    return found


def scores(
    assignment: str,
    source: Mapping[str, bytes],
    submissions: Mapping[str, Mapping[str, bytes]],
) -> Scores:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lay_out(folder, assignment, source, submissions)
        nbgrader(folder, "autograde", assignment)
        return autograded(folder, assignment)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def load() -> Mapping[str, Scores]:
    """Return the committed table."""
    table: Mapping[str, Scores] = json.loads(PATH.read_text(encoding="utf-8"))
    return table


def main() -> None:
    found: dict[str, object] = {
        "nbgrader": version("nbgrader"),
        "ps1": scores("ps1", ps1.source(), ps1.SOLUTIONS),
        # One at a time, because some affect the scores of others.
        "secret": {
            name: scores("secret", cheats.source(), {name: files, "honest": honest})[student(name)]
            for honest in [cheats.OTHERS["honest"]]
            for name, files in {**cheats.OTHERS, **cheats.CHEATS}.items()
        },
    }
    PATH.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
