"""A course of an installation, in which every student has submitted and has been graded.

Its submissions are stored without their students, who need no accounts; the rest is done over REST,
so that the installation grades them as it grades any.
"""

from __future__ import annotations

import base64
import json
import time
from contextlib import closing

from sqlalchemy.engine import URL

from carrel.courses.files.blobs import FolderBlobs
from carrel.courses.files.bundle import FileBundle
from carrel.courses.files.transfer import store_bundle
from carrel.courses.model.records import NewSubmission
from carrel.courses.store import SqlCourseStore
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.store.sql.transactions import Transactions

from ..courses.notebook_samples import assignment, with_essay
from ..e2e.support import Installation

COURSE = "seminar"
STUDENTS = tuple(f"ada{number:02}" for number in range(1, 31))
ASSIGNMENTS = ("ps01", "ps02", "ps03")
_QUESTIONS = 5
_NOTEBOOK = "ps.ipynb"


def fill(site: Installation) -> None:
    """Create the course, release its assignments, submit for everybody, and grade."""
    roster = "".join(f"{name},{name.title()} Example\n" for name in STUDENTS)
    _made(site, "/courses", name=COURSE, students=f"student,name\n{roster}")
    files = [{"name": _NOTEBOOK, "content": base64.b64encode(_teachers()).decode()}]
    for name in ASSIGNMENTS:
        _made(site, f"{_path(name)}/release", files=files)
    _submit(site)
    for name in ASSIGNMENTS:
        run = str(_made(site, f"{_path(name)}/grading")["request"])
        site.wait_for(run, "succeeded", user="admin", within=600)


def _teachers() -> bytes:
    """A notebook with five tests and a question that a person grades."""
    questions = (
        (f"q{n}", f"def q{n}():", f"return {n}", f"q{n}() >= 0", f"q{n}() == {n}")
        for n in range(_QUESTIONS)
    )
    return with_essay(assignment(*questions))


def _students(person: str) -> bytes:
    """The notebook with solutions, of which each student's differs."""
    notebook = json.loads(_teachers())
    notebook["cells"][-1]["source"] = f"Because {person} says so."
    return json.dumps(notebook).encode()


def _submit(site: Installation) -> None:
    state = StateFolder.at(site.state)
    blobs = FolderBlobs(state.blobs)
    with closing(Transactions(URL.create("sqlite", database=str(state.database)))) as transactions:
        store = SqlCourseStore(transactions)
        for person in STUDENTS:
            files = store_bundle(blobs, FileBundle.of([(_NOTEBOOK, _students(person))]))
            for name in ASSIGNMENTS:
                store.submit(
                    NewSubmission(
                        course=COURSE, assignment=name, person=person, at=time.time(), files=files
                    )
                )


def _path(name: str) -> str:
    return f"/courses/{COURSE}/assignments/{name}"


def _made(site: Installation, path: str, **body: object) -> dict[str, object]:
    answer = site.api("POST", path, user="admin", json=body)
    assert answer.status_code < 300, (path, answer.text)
    return dict(answer.json())
