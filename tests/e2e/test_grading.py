"""Grading of a class on the pool: killed, continued, and seen by its teacher."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing

import psutil

from ..courses.notebook_samples import source
from .classes import PS1, ask, hand_in, handed
from .support import Installation, eventually

GRADER = "carrel.courses.grading_runs.worker"
RIGHT = "def answer():\n    return 42"
SLOW_AND_WRONG = "import time\ntime.sleep(5)\ndef answer():\n    return 7"


def graders(site: Installation, request: str) -> list[psutil.Process]:
    lease = site.request(request, user="teacher")["lease"]
    found = site.processes_of(lease["id"]) if lease else []
    return [each for each in found if GRADER in each.cmdline()]


def test_a_class_is_graded_although_the_grader_is_killed(site: Installation) -> None:
    students = "student,name\nstudent1,Ada\nstudent2,Ben\n"
    ask(site, "POST", "/courses", "admin", name="cs102", teachers=["teacher"], students=students)
    ask(site, "POST", f"{PS1}/release", "teacher", files=handed(source()))
    hand_in(site, "student1", RIGHT)
    hand_in(site, "student2", SLOW_AND_WRONG)

    run = site.cli_json("course", "grade", "ps1", "--course", "cs102", user="teacher")
    again = site.cli_json("course", "grade", "ps1", "--course", "cs102", user="teacher")
    assert again["request"] == run["request"]

    def first_verdict() -> str | None:
        grades = ask(site, "GET", f"{PS1}/grading", "teacher")["grades"]
        done = {each["person"]: each["graded_at"] for each in grades if each["graded_at"]}
        return str(done["student1"]) if set(done) == {"student1"} else None

    kept = eventually(first_verdict, "a verdict on student1 alone")
    (grader,) = graders(site, run["request"])
    grader.kill()
    ended = site.wait_for(run["request"], "succeeded", "failed", "lost", user="teacher")
    assert (ended["state"], ended["lease"]["epoch"]) == ("succeeded", 2)
    log = site.cli("logs", run["request"], user="teacher").stdout
    assert log == "carrel: Carrel's program ran without an error.\n"

    shown = ask(site, "GET", f"{PS1}/grading", "teacher")
    ada, ben = shown["grades"]
    assert str(ada["graded_at"]) == kept
    assert [(each["score"], each["max_score"]) for each in (ada, ben)] == [(2.0, 2.0), (0.0, 2.0)]
    assert (ada["cells"][0]["word"], ben["cells"][0]["word"]) == ("passed", "failed")
    assert "42" not in ben["cells"][0]["sentence"]
    assert (shown["run"]["done"], shown["run"]["total"], shown["run"]["ended"]) == (2, 2, True)

    table = site.cli("course", "grades", "ps1", "--course", "cs102", "--csv", user="teacher")
    rows = list(csv.DictReader(io.StringIO(table.stdout)))
    assert [(row["name"], row["ps1/test-answer"]) for row in rows] == [
        ("Ada", "2.0"),
        ("Ben", "0.0"),
    ]
    with closing(sqlite3.connect(site.state / "courses" / "cs102" / "gradebook.db")) as book:
        scores = book.execute("select auto_score from grade order by auto_score").fetchall()
    assert scores == [(0.0,), (2.0,)]

    own = ("course", "grades", "ps1", "--course", "cs102")
    assert "not released feedback yet" in site.cli(*own, user="student2").stdout
    given = site.cli("course", "feedback", "ps1", "--course", "cs102", "--release", user="teacher")
    assert given.stdout.count("has feedback on ps1.") == 2
    target = site.state / "pages"
    words = ("course", "feedback", "ps1", "--course", "cs102", "--to", str(target))
    site.cli(*words, user="student2")
    page = (target / "ps1.html").read_text()
    assert "A check of this test failed." in page
    assert "42" not in page.partition("<body")[2]
    assert "<script" not in page

    assert "0 of 2 points" in site.cli(*own, user="student2").stdout
    assert site.cli_json(*own, user="student1")["grade"]["score"] == 2.0
    what_is_wrong_passes_the_test_that_can_be_seen(site)

    refused = site.api("GET", f"{PS1}/grading", user="student1")
    assert refused.status_code == 403
    unknown = site.api("POST", f"{PS1}/grading", user="teacher", json={"question": "q9"})
    assert unknown.status_code == 400
    assert "test-answer" in unknown.text


def what_is_wrong_passes_the_test_that_can_be_seen(site: Installation) -> None:
    """Check student2's submission; the result has nothing of the hidden test."""
    asked = ask(site, "POST", f"{PS1}/checks", "student2")
    assert site.request(asked["request"], user="student2")["priority"] == "interactive"
    ended = site.wait_for(asked["request"], "succeeded", "failed", user="student2")
    assert ended["state"] == "succeeded"
    (found,) = ask(site, "GET", f"{PS1}/checks", "student2")["checks"]
    assert (found["passed"], found["cells"][0]["word"]) == (True, "passed")
    assert "42" not in found["cells"][0]["sentence"]
    assert ask(site, "GET", f"{PS1}/checks", "student1")["checks"] == []
