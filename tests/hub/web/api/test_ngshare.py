"""ngshare's REST API over HTTP: requests of its clients, responses and refusals."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from carrel.courses.files.bundle import MAX_BYTES, MAX_FILES
from carrel.hub.web import TokenHolder
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE, READ_SCOPE

from ....courses.notebook_samples import SOURCE, source
from ...doubles import ADMIN, STRANGER, STUDENT1, STUDENT2, TEACHER
from .ngshare_site import AT, FILES, GRADER, Site, tree

ONE, TWO, THREE = (source(number) for number in (1, 2, 3))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def course(site: Site) -> Site:
    assert site.release().json() == {"success": True}
    return site


def unpacked(answer: httpx.Response) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text
    found = answer.json()["files"]
    files = {each["path"]: base64.b64decode(each["content"]) for each in found}
    assert {each["path"]: each["checksum"] for each in found} == {
        name: hashlib.md5(content, usedforsecurity=False).hexdigest()
        for name, content in files.items()
    }
    return files


def said(answer: httpx.Response) -> tuple[int, str]:
    body: dict[str, Any] = answer.json()
    assert body["success"] is False
    return answer.status_code, body["message"]


class TestCoursesAndPeople:
    def test_users_see_their_own_courses(self, site: Site) -> None:
        for who in (ADMIN, TEACHER, GRADER, STUDENT1):
            expected = {"success": True, "courses": ["cs101"]}
            assert site.get(who, "courses").json() == expected
        assert site.get(STRANGER, "courses").json()["courses"] == []

    def test_people_have_the_names_of_the_roster(self, site: Site) -> None:
        ada = {
            "username": "student1",
            "first_name": "Ada King",
            "last_name": "Lovelace",
            "email": None,
        }
        found = site.get(TEACHER, "students/cs101").json()["students"]
        assert [each["username"] for each in found] == ["student1", "student2"]
        assert found[0] == ada
        for who in (STUDENT1, TEACHER):
            answer = site.get(who, "student/cs101/student1").json()
            assert answer == {"success": True, **ada}
        assert site.get(STUDENT1, "instructors/cs101").json()["instructors"] == [
            {"username": "teacher", "first_name": None, "last_name": None, "email": None}
        ]
        assert site.get(STUDENT1, "instructor/cs101/teacher").json()["success"]

    def test_missing_rights_are_reported_in_ngshares_words(self, site: Site) -> None:
        for who, path, status, words in (
            (STUDENT1, "students/cs101", 403, "Permission denied (not course instructor). "),
            (STUDENT1, "student/cs101/student2", 403, "Permission denied (not course instructor)"),
            (TEACHER, "student/cs101/nobody", 404, "Student not found. "),
            (TEACHER, "instructor/cs101/student1", 404, "Instructor not found. "),
            (STUDENT1, "students/cs999", 404, "Course not found. "),
            (STRANGER, "assignments/cs101", 404, "Course not found. "),
        ):
            code, message = said(site.get(who, path))
            assert (path, code, message[: len(words)]) == (path, status, words)

    def test_a_token_with_the_scope_for_changes_is_required(self, site: Site) -> None:
        assert said(site.world.client().get(f"{AT}/courses"))[0] == 401
        scopes = frozenset({ACCESS_SCOPE, READ_SCOPE})
        site.world.sign_in.people["reads"] = TokenHolder(identity=TEACHER, scopes=scopes)
        reader = site.world.program("reads")
        answer = reader.post(f"{AT}/assignment/cs101/ps1", data={"files": tree(FILES)})
        assert said(answer)[0] == 403
        assert said(site.world.program("teacher").get(f"{AT}/nothing"))[0] == 404
        assert said(site.world.program("teacher").put(f"{AT}/courses"))[0] == 405


class TestAssignments:
    def test_students_fetch_a_released_assignment(self, course: Site) -> None:
        assert course.get(STUDENT1, "assignments/cs101").json()["assignments"] == ["ps1"]
        assert unpacked(course.get(STUDENT1, "assignment/cs101/ps1")) == FILES
        assert [each.person for each in course.store.fetched("cs101", "ps1")] == ["student1"]

    def test_a_list_has_no_contents_and_is_no_fetch(self, course: Site) -> None:
        found = course.get(STUDENT1, "assignment/cs101/ps1", list_only="true").json()["files"]
        assert [set(each) for each in found] == [{"path", "checksum"}] * 2
        assert course.store.fetched("cs101", "ps1") == ()

    def test_the_solution_may_come_along_and_stays_with_the_teachers(self, site: Site) -> None:
        source = {"ps1.ipynb": SOURCE}
        due = "2027-01-20 18:00 UTC"
        assert site.release(source=tree(source), due=due).status_code == 200
        made = site.store.released_version("cs101", "ps1")
        assert [file.size for file in made.source.files] == [len(SOURCE)]
        assert site.store.assignment("cs101", "ps1").due == 1_800_468_000.0
        for who in (STUDENT1, TEACHER):
            assert unpacked(site.get(who, "assignment/cs101/ps1")) == FILES

    def test_it_is_released_once_again_by_force_or_after_it_was_withdrawn(
        self, course: Site
    ) -> None:
        code, message = said(course.release())
        assert (code, message[:26]) == (409, "Assignment already exists.")
        assert course.release({"ps1.ipynb": b"[2]"}, force="true").status_code == 200
        assert unpacked(course.get(STUDENT1, "assignment/cs101/ps1")) == {"ps1.ipynb": b"[2]"}
        gone = course.world.program("teacher").delete(f"{AT}/assignment/cs101/ps1")
        assert gone.json() == {"success": True}
        for who in (STUDENT1, TEACHER):
            assert course.get(who, "assignments/cs101").json()["assignments"] == []
            assert said(course.get(who, "assignment/cs101/ps1"))[1].startswith(
                "Assignment not found. "
            )
        assert course.release({"ps1.ipynb": b"[3]"}).status_code == 200
        assert unpacked(course.get(STUDENT1, "assignment/cs101/ps1")) == {"ps1.ipynb": b"[3]"}

    def test_only_teachers_release_and_withdraw(self, course: Site) -> None:
        for who, status in ((STUDENT1, 403), (GRADER, 403), (STRANGER, 404)):
            released = course.post(who, "assignment/cs101/ps2", files=tree(FILES))
            gone = course.world.program(who.name).delete(f"{AT}/assignment/cs101/ps1")
            assert (said(released)[0], said(gone)[0]) == (status, status)
        assert [each.name for each in course.store.assignments("cs101")] == ["ps1"]
        assert course.store.assignment("cs101", "ps1").open


class TestSubmissions:
    def test_submissions_are_collected_by_time(self, course: Site) -> None:
        first, second = course.submit(ONE), course.submit(TWO)
        assert first == "2027-01-15 08:00:01.250000 UTC"
        course.submit(THREE, STUDENT2)
        found = course.get(TEACHER, "submissions/cs101/ps1").json()["submissions"]
        assert [(each["student_id"], each["timestamp"], each["counts"]) for each in found] == [
            ("student1", first, False),
            ("student1", second, True),
            ("student2", "2027-01-15 08:00:03.250000 UTC", True),
        ]
        last = course.get(GRADER, "submission/cs101/ps1/student1")
        assert (unpacked(last), last.json()["timestamp"]) == ({"ps1.ipynb": TWO}, second)
        for timestamp in (first, first.removesuffix(" UTC")):
            earlier = course.get(TEACHER, "submission/cs101/ps1/student1", timestamp=timestamp)
            assert unpacked(earlier) == {"ps1.ipynb": ONE}

    def test_students_see_their_own_and_no_others(self, course: Site) -> None:
        course.submit(ONE)
        course.submit(THREE, STUDENT2)
        found = course.get(STUDENT1, "submissions/cs101/ps1/student1").json()["submissions"]
        assert [each["student_id"] for each in found] == ["student1"]
        assert unpacked(course.get(STUDENT1, "submission/cs101/ps1/student1"))
        for path in (
            "submissions/cs101/ps1",
            "submissions/cs101/ps1/student2",
            "submission/cs101/ps1/student2",
        ):
            code, message = said(course.get(STUDENT1, path))
            assert code == 403
            assert message.startswith("Permission denied (not course instructor). ")

    def test_missing_things_are_reported_in_ngshares_words(self, course: Site) -> None:
        course.submit(ONE)
        never, unclear = {"timestamp": "2020-01-01 00:00:00.0 UTC"}, {"timestamp": "yesterday"}
        for path, query, status, words in (
            ("submission/cs101/ps9/student1", {}, 404, "Assignment not found. "),
            ("submission/cs101/ps1/nobody", {}, 404, "Student not found. "),
            ("submission/cs101/ps1/student2", {}, 404, "Submission not found. "),
            ("submission/cs101/ps1/student1", never, 404, "Submission not found. "),
            ("submission/cs101/ps1/student1", unclear, 400, "Time format incorrect. "),
            ("feedback/cs101/ps1/student1", {}, 400, "Please supply timestamp."),
        ):
            code, message = said(course.get(TEACHER, path, **query))
            assert (path, code, message[: len(words)]) == (path, status, words)

    def test_the_same_again_is_the_same_submission(self, course: Site) -> None:
        assert course.submit(ONE) == course.submit(ONE)
        assert len(course.store.submissions("cs101")) == 1

    def test_no_complete_submission_is_replaced_by_one_without_its_notebook(
        self, course: Site
    ) -> None:
        lacking = tree({"other.ipynb": ONE})
        assert course.post(STUDENT2, "submission/cs101/ps1", files=lacking).status_code == 200
        course.submit(ONE)
        code, message = said(course.post(STUDENT1, "submission/cs101/ps1", files=lacking))
        assert (code, message[:45]) == (409, "Nothing was submitted: ps1.ipynb is missing. ")

    def test_feedback_is_seen_by_its_student(self, course: Site) -> None:
        timestamp = course.submit(ONE)
        at = "feedback/cs101/ps1/student1"
        assert unpacked(course.get(STUDENT1, at, timestamp=timestamp)) == {}
        pages = {"ps1.html": b"<p>Well done.</p>"}
        given = course.post(GRADER, at, timestamp=timestamp, files=tree(pages))
        assert given.json() == {"success": True}
        assert unpacked(course.get(STUDENT1, at, timestamp=timestamp)) == pages
        listed = course.get(STUDENT1, at, timestamp=timestamp, list_only="true").json()
        assert [set(each) for each in listed["files"]] == [{"path", "checksum"}]
        assert said(course.get(STUDENT2, at, timestamp=timestamp))[0] == 403
        assert said(course.post(STUDENT1, at, timestamp=timestamp, files=tree(pages)))[0] == 403


BAD = [
    ("illegal", {"path": "../ps1.ipynb", "content": ""}, "Illegal path. "),
    ("absolute", {"path": "/etc/passwd", "content": ""}, "Illegal path. "),
    ("inner dots", {"path": "a/../../b", "content": ""}, "Illegal path. "),
    ("no name", {"path": "", "content": ""}, "Illegal path. "),
    ("a dot", {"path": "a/./b", "content": ""}, "Illegal path. "),
    ("backslash", {"path": "..\\b", "content": ""}, "Illegal path. "),
    ("control", {"path": "a\u202eb", "content": ""}, "Illegal path. "),
    ("half a letter", {"path": "\ud800", "content": ""}, "Files cannot be JSON decoded. "),
    ("base64", {"path": "a", "content": "amtsCg"}, "Content cannot be base64 decoded. "),
    ("no base64", {"path": "a", "content": "é"}, "Content cannot be base64 decoded. "),
    ("checksum", {"path": "a", "content": "YQ==", "checksum": "0" * 32}, "Checksum mismatch. "),
    ("alike", {"path": "PS1.ipynb", "content": ""}, "'ps1.ipynb' and 'PS1.ipynb' are too alike."),
    ("twice", {"path": "ps1.ipynb", "content": ""}, "'ps1.ipynb' is there twice."),
    ("a folder", {"path": "ps1.ipynb/a", "content": ""}, "'ps1.ipynb' is a file and a folder."),
    ("a number", {"path": 1, "content": ""}, "Files cannot be JSON decoded. "),
    ("a link", {"path": "a", "content": "", "link": "b"}, "Files cannot be JSON decoded. "),
]
ROUTES = ("submission/cs101/ps1", "assignment/cs101/ps2", "feedback/cs101/ps1/student1")


class TestRefusedFiles:
    def _tried(self, site: Site, route: str, files: str, timestamp: str) -> tuple[int, str]:
        who = STUDENT1 if route.startswith("submission") else TEACHER
        return said(site.post(who, route, files=files, timestamp=timestamp))

    @pytest.mark.parametrize("route", ROUTES)
    def test_a_refused_submission_stores_nothing(self, course: Site, route: str) -> None:
        timestamp = course.submit(ONE)
        for name, bad, words in BAD:
            files = json.dumps([{"path": "ps1.ipynb", "content": "e30="}, bad])
            code, message = self._tried(course, route, files, timestamp)
            assert (name, code, message[: len(words)]) == (name, 400, words)
        for files, words in (
            ("", "Please supply files."),
            ("[]", "Please supply files."),
            ("{", "Files cannot be JSON decoded. "),
            ("{}", "Files cannot be JSON decoded. "),
        ):
            assert self._tried(course, route, files, timestamp)[1].startswith(words)
        many = tree({f"{number}.txt": b"" for number in range(MAX_FILES + 1)})
        assert self._tried(course, route, many, timestamp)[0] == 413
        assert [each.name for each in course.store.assignments("cs101")] == ["ps1"]
        assert len(course.store.submissions("cs101")) == 1
        assert course.store.feedback("cs101", "ps1") == {}

    def test_too_large_a_folder_is_refused(self, course: Site) -> None:
        # Built by hand: `urlencode` takes seconds for it.
        around = quote('[{"path":"a.bin","content":"HERE"}]').encode().split(b"HERE")
        content = b"A" * (MAX_BYTES // 3 * 4 + 8)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = course.world.program("student1").post(
            f"{AT}/submission/cs101/ps1", content=b"files=" + content.join(around), headers=headers
        )
        code, message = said(answer)
        assert (code, "MiB" in message) == (413, True)
        assert course.store.submissions("cs101") == ()

    def test_a_body_beyond_all_limits_is_not_read(self, course: Site) -> None:
        headers = {
            "Content-Length": str(1 << 30),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        program = course.world.program("student1")
        answer = program.post(f"{AT}/submission/cs101/ps1", content=b"files=", headers=headers)
        assert said(answer)[0] == 413

    def test_a_multipart_form_is_accepted(self, course: Site) -> None:
        fields = {"files": (None, tree({"ps1.ipynb": b"x" * 2_000_000}))}
        sent = course.world.program("student1").post(f"{AT}/submission/cs101/ps1", files=fields)
        assert sent.status_code == 200, sent.text
        broken = course.world.program("student1").post(
            f"{AT}/submission/cs101/ps1",
            content=b"no parts",
            headers={"Content-Type": "multipart/form-data; boundary=x"},
        )
        assert broken.status_code == 400

    def test_another_form_of_body_is_refused(self, course: Site) -> None:
        program = course.world.program("student1")
        assert said(program.post(f"{AT}/submission/cs101/ps1", json={"files": []}))[0] == 400
        for body in (b"files=\xff", b"&".join(b"a=1" for _ in range(99))):
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            answer = program.post(f"{AT}/submission/cs101/ps1", content=body, headers=headers)
            assert said(answer)[0] == 400
