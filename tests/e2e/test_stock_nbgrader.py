"""Stock nbgrader in sessions, by its own commands only: from the release to the feedback.

All commands run in the environments of two users' sessions, without configuration by them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from ..courses.notebook_samples import source
from .support import Installation, eventually

pytestmark = pytest.mark.slow
NBGRADER = str(Path(sys.prefix) / "bin" / "nbgrader")
RIGHT = "def answer():\n    return 42"
WRONG = "def answer():\n    return 7"


@dataclass(frozen=True)
class Terminal:
    """A user's session, as its own terminal sees it."""

    home: Path
    environment: Mapping[str, str]

    @classmethod
    def of(cls, site: Installation, user: str) -> Terminal:
        started = site.start_session(user, devices=0)
        running = site.wait_for(started["id"], "running", user=user)
        lease = str(running["lease"]["id"])

        def server() -> dict[str, str] | None:
            found = [each.environ() for each in site.processes_of(lease)]
            return next((each for each in found if "JUPYTERHUB_API_TOKEN" in each), None)

        return cls(site.state / "homes" / user, eventually(server, f"{user}'s session"))

    def nbgrader(self, *words: str, folder: str = ".", status: int = 0) -> str:
        """Return its output."""
        done = subprocess.run(
            [NBGRADER, *words],
            cwd=self.home / folder,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == status, (words, done.stdout)
        return done.stdout


def write_source(teacher: Terminal, answer: int = 42) -> None:
    """The folder of a course, as a teacher has it, with its name and nothing about Carrel."""
    folder = teacher.home / "cs102"
    place = folder / "source" / "ps1"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'cs102'\n"
    )
    (place / "ps1.ipynb").write_bytes(source(answer))
    (place / "data.csv").write_text("1,2\n")


def solve(student: Terminal, solution: str) -> None:
    path = student.home / "ps1" / "ps1.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = solution
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def course(site: Installation) -> Installation:
    body = {
        "name": "cs102",
        "teachers": ["teacher"],
        "students": "student,name\nstudent1,Ada\n",
    }
    made = site.api("POST", "/courses", user="admin", json=body)
    assert made.status_code == 201, made.text
    return site


def test_stock_commands_release_fetch_submit_collect_and_release_feedback(
    course: Installation,
) -> None:
    teacher, student = Terminal.of(course, "teacher"), Terminal.of(course, "student1")
    write_source(teacher)
    teacher.nbgrader("generate_assignment", "ps1", folder="cs102")
    released = teacher.nbgrader("release_assignment", "ps1", folder="cs102")
    assert "Released as: cs102 ps1" in released
    assert "No nbgrader_config.py" not in released

    assert "cs102 ps1\n" in student.nbgrader("list")
    student.nbgrader("fetch_assignment", "ps1", "--course", "cs102")
    assert sorted(each.name for each in (student.home / "ps1").glob("[!.]*")) == [
        *("data.csv", "ps1.ipynb")
    ]
    fetched = (student.home / "ps1" / "ps1.ipynb").read_text()
    assert "42" not in fetched
    assert "raise NotImplementedError" in fetched

    solve(student, WRONG)
    student.nbgrader("submit", "ps1", "--course", "cs102")
    solve(student, RIGHT)
    assert "this one is graded" in student.nbgrader("submit", "ps1", "--course", "cs102")

    assert teacher.nbgrader("list", "--inbound", folder="cs102").count("cs102 student1 ps1") == 2
    teacher.nbgrader("collect", "ps1", folder="cs102")
    collected = teacher.home / "cs102" / "submitted" / "student1" / "ps1"
    assert sorted(each.name for each in collected.iterdir()) == [
        *("data.csv", "ps1.ipynb", "timestamp.txt")
    ]
    teacher.nbgrader("autograde", "ps1", folder="cs102")
    teacher.nbgrader("generate_feedback", "ps1", folder="cs102")
    teacher.nbgrader("release_feedback", "ps1", folder="cs102")

    student.nbgrader("fetch_feedback", "ps1", "--course", "cs102")
    (page,) = (student.home / "ps1" / "feedback").rglob("*.html")
    assert page.name == "ps1.html"
    assert page.parent.name == (collected / "timestamp.txt").read_text()
    assert "Score: 2.0 / 2.0" in page.read_text()
    listed = student.nbgrader("list", "--cached")
    assert listed.count("(feedback already fetched)") == 1
    assert listed.count("(no feedback available)") == 1
