"""Assignments in JupyterLab: fetch, check and hand in from the folders of the home."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from carrel.courses.workspace.folder import MARK, FetchRecord, fetch_record_of
from carrel.extensions.lab import coursework, session_place
from carrel.extensions.lab.coursework import (
    AssignmentIn,
    FetchIn,
    FolderAssignmentOut,
    HandInIn,
)
from carrel.extensions.lab.session_place import NothingIn, PathIn, SessionPlace
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas.checks import CheckOut
from carrel.hub.schemas.courses import (
    AssignmentOut,
    ContentOut,
    CourseOut,
    HandOutOut,
    ReceiptOut,
    SubmitIn,
)
from carrel.hub.schemas.coursework.official_checks import OfficialCheckOut, OfficialChecksOut

RECEIPT = ReceiptOut(
    id=1, number=1, course="cs101", assignment="ps1", person="ada", at=5.0, sha256="ab", files=[],
    size=0, standing="on time", penalty=0.0, counts=True, sentence="On time.",
)  # fmt: skip  # what the tests do not read
CHECK = CheckOut(
    request="g-1", course="cs101", assignment="ps1", state="queued", ended=False, asked_at=5.0,
    sha256="ab", sentence="Queued.",
)  # fmt: skip  # as above


OFFICIAL = OfficialCheckOut(
    id="g-2", course="cs101", assignment="ps1", version=1, person="ada", sha256="ab", asked_at=5.0,
    outcome="", ended=False, sentence="Queued.",
)  # fmt: skip  # as above
OFFICIALS = OfficialChecksOut(
    per_day=2, names_cells=False, left=1, next_at=9.0, zone="UTC", checks=[OFFICIAL, OFFICIAL]
)


def assignment(name: str, **fields: Any) -> AssignmentOut:
    plain = {"course": "cs101", "due": None, "class_due": None, "zone": "UTC", "late": ""}
    plain |= {"late_rule": "", "state": "open", "closes_at": None, "version": 1}
    return AssignmentOut(**({"name": name, "devices": 0, "seconds": 60} | plain | fields))


def course(name: str, role: str, **fields: Any) -> CourseOut:
    plain = {"title": "", "image": "local", "teachers": [], "students": 1, "assignments": 1}
    return CourseOut(**({"name": name, "role": role} | plain | fields))


@dataclass
class FakeClient:
    version: int = 1
    given: dict[str, list[AssignmentOut]] = field(default_factory=dict)
    roles: list[CourseOut] = field(default_factory=list)
    sent: list[tuple[str, str, SubmitIn]] = field(default_factory=list)
    ran: list[CheckOut] = field(default_factory=list)

    def courses(self) -> list[CourseOut]:
        return self.roles

    def assignments(self, name: str) -> list[AssignmentOut]:
        return self.given[name]

    def fetch_assignment(
        self, course: str, assignment: str, *, version: int | None = None
    ) -> HandOutOut:
        content = base64.b64encode(f"{course} {version or self.version}".encode()).decode()
        return HandOutOut(
            course=course,
            assignment=assignment,
            version=version or self.version,
            released_at=0.0,
            released_by="boss",
            sha256="ab",
            files=[ContentOut(name="data.txt", content=content)],
        )

    def check(self, course: str, assignment: str, body: SubmitIn) -> CheckOut:
        self.sent.append((course, assignment, body))
        return CHECK

    def checks(self, course: str, assignment: str) -> list[CheckOut]:
        return self.ran

    def official_check(self, course: str, assignment: str, body: SubmitIn) -> OfficialCheckOut:
        self.sent.append((course, assignment, body))
        return OFFICIAL

    def official_checks(self, course: str, assignment: str) -> OfficialChecksOut:
        return OFFICIALS

    def submit_assignment(self, course: str, assignment: str, body: SubmitIn) -> ReceiptOut:
        self.sent.append((course, assignment, body))
        return RECEIPT


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    made = FakeClient()
    monkeypatch.setattr(session_place, "client_of", lambda: made)
    return made


@pytest.fixture
def place(tmp_path: Path, client: FakeClient) -> SessionPlace:
    return SessionPlace(root=tmp_path, request_id="s-1")


def fetched(place: SessionPlace, course: str = "cs101", *, missing: bool = False) -> str:
    body = FetchIn(course=course, assignment="ps1", missing=missing)
    return coursework.fetch(place, body).folder


def names(body: SubmitIn) -> Iterable[str]:
    return [file.name for file in body.files]


def test_an_assignment_is_fetched_and_a_newer_version_only_when_asked(
    place: SessionPlace, client: FakeClient
) -> None:
    assert fetched(place) == "ps1"
    file = place.root / "ps1" / "data.txt"
    client.version = 2
    assert fetched(place, missing=True) == "ps1"
    assert file.read_text() == "cs101 1"
    assert fetched(place) == "ps1"
    assert file.read_text() == "cs101 2"


def test_the_same_name_in_another_course_gets_a_folder_of_its_own(place: SessionPlace) -> None:
    assert fetched(place) == "ps1"
    assert fetched(place, "cs102") == "cs102/ps1"
    assert fetched(place, "cs102", missing=True) == "cs102/ps1"
    assert (place.root / "ps1" / "data.txt").read_text() == "cs101 1"


def test_the_first_notebook_is_opened(place: SessionPlace) -> None:
    (place.root / "ps1").mkdir()
    for name in ("b.ipynb", "a-1.ipynb", "a.ipynb"):
        (place.root / "ps1" / name).write_text("{}")
    body = FetchIn(course="cs101", assignment="ps1")
    assert coursework.fetch(place, body).notebook == "ps1/a.ipynb"


@pytest.mark.parametrize("path", ["ps1", "ps1/data.txt", "ps1/deep/work.ipynb"])
def test_a_document_belongs_to_the_folder_around_it(place: SessionPlace, path: str) -> None:
    fetched(place)
    (place.root / "ps1" / "deep").mkdir()
    found = coursework.assignment_of(place, PathIn(path=path))
    assert (found.course, found.assignment, found.folder) == ("cs101", "ps1", "ps1")


@pytest.mark.parametrize("path", ["", "other/work.ipynb", "../ps1", "/etc/passwd"])
def test_other_documents_belong_to_none_and_cannot_be_handed_in(
    place: SessionPlace, client: FakeClient, path: str
) -> None:
    fetched(place)
    # As if the home itself had been fetched: its files are not the work of an assignment.
    (place.root / MARK).write_text(json.dumps({"course": "c", "assignment": "a", "version": 1}))
    assert coursework.assignment_of(place, PathIn(path=path)) == FolderAssignmentOut()
    with pytest.raises(InvalidInput, match="not in the folder of an assignment"):
        coursework.hand_in(place, HandInIn(path=path))
    assert client.sent == []


def test_the_whole_folder_is_checked_and_handed_in_without_links(
    place: SessionPlace, client: FakeClient
) -> None:
    fetched(place)
    (place.root / "ps1" / "work.ipynb").write_text("{}")
    (place.root / "ps1" / "secret").symlink_to("/etc/passwd")
    assert coursework.check(place, PathIn(path="ps1/work.ipynb")) == CHECK
    handed = coursework.hand_in(place, HandInIn(path="ps1", incomplete=True))
    assert handed.receipt == RECEIPT
    assert handed.left_out == ["secret"]
    (_, _, checked), (name, work, submitted) = client.sent
    assert (name, work) == ("cs101", "ps1")
    assert names(checked) == names(submitted) == ["data.txt", "work.ipynb"]
    assert (submitted.version, submitted.incomplete) == (1, True)


def test_an_empty_folder_is_refused(place: SessionPlace) -> None:
    fetched(place)
    (place.root / "ps1" / "data.txt").unlink()
    with pytest.raises(InvalidInput, match="no files in ps1"):
        coursework.check(place, PathIn(path="ps1"))


def test_the_newest_check_is_read(place: SessionPlace, client: FakeClient) -> None:
    asked = AssignmentIn(course="cs101", assignment="ps1")
    assert coursework.last_check(place, asked).check is None
    client.ran = [CHECK, CHECK.model_copy(update={"request": "g-0"})]
    assert coursework.last_check(place, asked).check == CHECK


def test_the_whole_folder_is_checked_officially(place: SessionPlace, client: FakeClient) -> None:
    fetched(place)
    (place.root / "ps1" / "work.ipynb").write_text("{}")
    assert coursework.official_check(place, PathIn(path="ps1/work.ipynb")) == OFFICIAL
    ((course_name, name, sent),) = client.sent
    assert (course_name, name, names(sent)) == ("cs101", "ps1", ["data.txt", "work.ipynb"])
    found = coursework.official_checks(place, AssignmentIn(course="cs101", assignment="ps1"))
    assert (found.left, found.checks) == (1, [OFFICIAL])


def test_students_see_their_assignments_by_due_date_and_graders_their_courses(
    place: SessionPlace, client: FakeClient
) -> None:
    fetched(place)
    client.roles = [
        course("cs101", "student"),
        course("cs102", "grader"),
        course("cs103", "teacher"),
        course("old", "student", archived_at=1.0),
    ]
    client.given["cs101"] = [
        assignment("closed", state="closed", due=1.0),
        assignment("free"),
        assignment("ps1", due=9.0, version=2, receipts=[RECEIPT], score=1.5, max_score=4.0),
    ]
    found = coursework.overview(place, NothingIn())
    assert found.teaches == ["cs102", "cs103"]
    assert [each.name for each in found.assignments] == ["ps1", "free", "closed"]
    first, second, _ = found.assignments
    assert (first.folder, first.newer, first.points) == ("ps1", True, "1.5 of 4 points")
    assert first.receipt == RECEIPT
    assert (first.official and first.official.left, second.official) == (1, None)
    assert (second.folder, second.newer, second.points) == ("", False, "")


def test_the_record_of_a_folder_is_read_once(
    place: SessionPlace, client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cs101", "cs102"):
        fetched(place, name)
        client.roles.append(course(name, "student"))
    client.given = {
        "cs101": [assignment("ps1"), assignment("ps2")],
        "cs102": [assignment("ps1").model_copy(update={"course": "cs102"})],
    }
    read: Counter[str] = Counter()

    def counted(folder: Path) -> FetchRecord | None:
        read[place.named(folder)] += 1
        return fetch_record_of(folder)

    monkeypatch.setattr(coursework, "fetch_record_of", counted)
    found = coursework.overview(place, NothingIn()).assignments
    assert {each.folder for each in found} == {"ps1", "", "cs102/ps1"}
    # Two courses have a ps1.
    assert read == {"ps1": 2, "ps2": 1, "cs102/ps1": 1}
