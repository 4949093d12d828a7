"""A class graded on the pool: asked for, killed in the middle, gone on, and seen by its teacher."""

from __future__ import annotations

import base64
import csv
import io
import json
import sqlite3
from typing import Any

import psutil

from ..courses.notebooks import source
from .support import Installation, eventually

GRADER = "carrel.hub.grader"
RIGHT = "def answer():\n    return 42"
SLOW_AND_WRONG = "import time\ntime.sleep(5)\ndef answer():\n    return 7"


def handed(content: bytes) -> list[dict[str, str]]:
    return [{"name": "ps1.ipynb", "content": base64.b64encode(content).decode()}]


def ask(site: Installation, method: str, path: str, user: str, **body: Any) -> Any:
    answer = site.api(method, path, user=user, **({"json": body} if method != "GET" else {}))
    assert answer.status_code < 300, answer.text
    return answer.json()


def hand_in(site: Installation, student: str, solution: str) -> None:
    place = "/courses/cs101/assignments/ps1"
    (file,) = ask(site, "GET", f"{place}/hand-out", student)["files"]
    notebook = json.loads(base64.b64decode(file["content"]))
    notebook["cells"][0]["source"] = solution
    ask(site, "POST", f"{place}/submissions", student, files=handed(json.dumps(notebook).encode()))


def graders(site: Installation, request: str) -> list[psutil.Process]:
    lease = site.request(request, user="teacher")["lease"]
    found = site.processes_of(lease["id"]) if lease else []
    return [each for each in found if GRADER in each.cmdline()]


def test_a_class_is_graded_and_a_killed_grader_loses_nothing(site: Installation) -> None:
    students = "student,name\nstudent1,Ada\nstudent2,Ben\n"
    ask(site, "POST", "/courses", "admin", name="cs101", teachers=["teacher"], students=students)
    place = "/courses/cs101/assignments/ps1"
    ask(site, "POST", f"{place}/release", "teacher", files=handed(source()))
    hand_in(site, "student1", RIGHT)
    hand_in(site, "student2", SLOW_AND_WRONG)

    run = site.cli_json("course", "grade", "ps1", "--course", "cs101", user="teacher")
    again = site.cli_json("course", "grade", "ps1", "--course", "cs101", user="teacher")
    assert again["request"] == run["request"]

    def first_verdict() -> str | None:
        grades = ask(site, "GET", f"{place}/grading", "teacher")["grades"]
        done = {each["person"]: each["graded_at"] for each in grades if each["graded_at"]}
        return str(done["student1"]) if set(done) == {"student1"} else None

    kept = eventually(first_verdict, "a verdict on student1 alone")
    (grader,) = graders(site, run["request"])
    grader.kill()
    ended = site.wait_for(run["request"], "succeeded", "failed", "lost", user="teacher")
    assert ended["state"] == "succeeded"
    assert ended["lease"]["epoch"] == 2

    shown = ask(site, "GET", f"{place}/grading", "teacher")
    ada, ben = shown["grades"]
    assert str(ada["graded_at"]) == kept
    assert [(each["score"], each["max_score"]) for each in (ada, ben)] == [(2.0, 2.0), (0.0, 2.0)]
    assert (ada["cells"][0]["word"], ben["cells"][0]["word"]) == ("passed", "failed")
    assert "42" not in ben["cells"][0]["sentence"]
    assert (shown["run"]["done"], shown["run"]["total"], shown["run"]["ended"]) == (2, 2, True)

    table = site.cli("course", "grades", "ps1", "--course", "cs101", "--csv", user="teacher")
    rows = list(csv.DictReader(io.StringIO(table.stdout)))
    assert [(row["name"], row["ps1/test-answer"]) for row in rows] == [
        ("Ada", "2.0"),
        ("Ben", "0.0"),
    ]
    book = sqlite3.connect(site.state / "courses" / "cs101" / "gradebook.db")
    scores = book.execute("select auto_score from grade order by auto_score").fetchall()
    book.close()
    assert scores == [(0.0,), (2.0,)]

    given = site.cli("course", "feedback", "ps1", "--course", "cs101", "--release", user="teacher")
    assert given.stdout.count("has feedback on ps1.") == 2
    target = site.state / "pages"
    words = ("course", "feedback", "ps1", "--course", "cs101", "--to", str(target))
    site.cli(*words, user="student2")
    page = (target / "ps1.html").read_text()
    assert "A check of this test failed." in page
    assert "42" not in page.partition("<body")[2]
    assert "<script" not in page

    refused = site.api("GET", f"{place}/grading", user="student1")
    assert refused.status_code == 403
    unknown = site.api("POST", f"{place}/grading", user="teacher", json={"question": "q9"})
    assert unknown.status_code == 400
    assert "test-answer" in unknown.text
