"""The page on which a person gives points: forms, links from student to student, and bad input."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from carrel.courses.gradebook import reader
from carrel.courses.manual_grading.service import blind_numbers
from carrel.courses.model.records import CourseRole, Member
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.store import SqlStore
from carrel.hub.transparency.log_store import SqlLogStore
from carrel.hub.web import TokenHolder
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE

from .....courses.manual_grading_samples import SUBMITTED_AT, grade_class, made_gradebook, release
from ....doubles import ADMIN, STUDENT1, TEACHER
from ...course_samples import PS1
from ...fakes import API, PREFIX
from ...site import Site, site
from .teacher_page import GUS, send, shown

__all__ = ["site"]

MANUAL = f"{PREFIX}course/cs101/grading/ps1/manual"
CLASS = ("ada", "ben", "cleo")
NUMBERS = blind_numbers("cs101", "ps1", CLASS)
ADA, BEN, CLEO = (f"{MANUAL}/{NUMBERS[person]}" for person in CLASS)
BAD = (
    ("3.5", "", 400, "essay has 0 to 3 points, not 3.5."),
    ("-1", "", 400, "essay has 0 to 3 points, not -1."),
    ("nan", "", 400, "&#39;nan&#39; is not a number of points."),
    ("many", "", 400, "&#39;many&#39; is not a number of points."),
    ("2", "x" * (1 << 20), 413, "The comment on essay has 1,048,576 characters."),
    ("2", "a\0b", 400, "contains the character NUL"),
)
ESSAY = {"notebook": "ps1", "cell": "essay"}


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_gradebook(tmp_path_factory.mktemp("made") / "cs101", CLASS)


@pytest.fixture
def graded(site: Site, gradebook: Path, tmp_path: Path) -> Site:
    shutil.copytree(gradebook, tmp_path / "courses" / "cs101")
    body = {"name": "cs101", "students": "student,name\nada,Ada L.\nben,\ncleo,\nstudent1,\n"}
    assert site.api().post(f"{API}/courses", json=body).status_code == 201
    site.clock.now = SUBMITTED_AT
    release(site.world.web.courses, TEACHER)
    grade_class(site.world.web.courses, TEACHER, CLASS)
    return site


def entry(folder: Path, person: str, cell: str = "essay") -> tuple[float | None, str]:
    """The points and the comment of a person in nbgrader's gradebook."""
    found = reader.pages(folder / "courses" / "cs101", "ps1")[person].cells["ps1", cell]
    return found.given, found.comment


def give(site: Site, page: str, points: str, comment: str = "", **more: str) -> httpx.Response:
    return send(site, page, points=points, comment=comment, **{**ESSAY, **more})


def location(answer: httpx.Response) -> str:
    assert answer.status_code == 303, re.findall(r'role="alert"[^<]*', answer.text)
    return str(answer.headers["location"])


def test_the_page_of_a_student_leads_to_the_points_of_a_person(graded: Site) -> None:
    page = shown(graded.page(TEACHER).get(f"{PREFIX}course/cs101/grading/ps1/student/ben"))
    assert f'href="{BEN}" id="manual">Grade by hand</a>' in page
    assert ">Notebook</th>" not in page  # there is one only


def test_a_class_is_graded_cell_by_cell(graded: Site, tmp_path: Path) -> None:
    assert location(graded.page(TEACHER).get(MANUAL)) == ADA
    page = shown(graded.page(TEACHER).get(ADA))
    assert "3 cells of 3 students need a person" in page
    assert f'href="{BEN}" rel="next"' in page
    assert 'rel="prev"' not in page
    assert "Ada L." in page

    after = location(give(graded, ADA, "2,5", "Say <b>why</b>.\r\nThen *how*."))
    assert after == f"{BEN}?at={quote('ps1/essay', safe='')}&saved=essay"
    assert entry(tmp_path, "ada") == (2.5, "Say <b>why</b>.\nThen *how*.")
    assert "essay was saved." in shown(graded.page(TEACHER).get(after))
    assert "Say &lt;b&gt;why&lt;/b&gt;." in shown(graded.page(TEACHER).get(ADA))

    assert location(give(graded, BEN, "0")).startswith(f"{CLEO}?")
    last = location(give(graded, CLEO, "3"))
    page = shown(graded.page(TEACHER).get(last))
    assert "No cell needs a person any more." in page
    grades = graded.api(TEACHER).get(f"{PS1}/grading").json()["grades"]
    assert [(each["score"], each["provisional"]) for each in grades] == [(4.5, 0), (2, 0), (5, 0)]
    authors = graded.context.store.changes(ChangeFilter(action=AuditAction.POINTS_SET))
    assert {(each.who, each.target) for each in authors} == {("teacher", "cs101/ps1")}
    assert isinstance(graded.context.store, SqlStore)
    entered = SqlLogStore(graded.context.store.transactions).enter_lines(SUBMITTED_AT)
    assert entered == len(CLASS) * len(("submission", "verdict", "points"))


def test_bad_input_gets_one_sentence_and_is_kept_in_the_form(graded: Site, tmp_path: Path) -> None:
    for points, comment, status, sentence in BAD:
        page = shown(give(graded, ADA, points, comment), status)
        assert sentence in page
        assert f'value="{points}"' in page
        assert comment in page
        assert entry(tmp_path, "ada") == (None, "")


def test_the_second_of_two_graders_sees_the_points_of_the_first(
    graded: Site, tmp_path: Path
) -> None:
    scopes = frozenset({ACCESS_SCOPE})
    graded.world.sign_in.people["gus-oauth"] = TokenHolder(identity=GUS, scopes=scopes)
    gus = Member(course="cs101", person="gus", role=CourseRole.GRADER)
    graded.world.web.courses.access.store.put_members("cs101", [gus])
    location(send(graded, ADA, GUS, points="1", comment="Short.", **ESSAY))

    page = shown(give(graded, ADA, "3", "Long."), 409)
    assert "it has 1 points and another comment now, by gus at" in page
    assert "Stored now: 1 points, comment “Short.”" in page
    assert ">\nLong.</textarea>" in page
    assert entry(tmp_path, "ada") == (1.0, "Short.")
    seen = {"seen_points": "1.0", "seen_comment": "Short."}
    location(give(graded, ADA, "3", "Long.", **seen))
    assert entry(tmp_path, "ada") == (3.0, "Long.")
    # The same values again, such as from a second press of the button, are no conflict.
    location(give(graded, ADA, "3", "Long.", **seen))


def test_names_can_be_hidden(graded: Site) -> None:
    start = location(graded.page(TEACHER).get(f"{MANUAL}?blind=yes"))
    order = sorted(NUMBERS.values())
    assert start == f"{MANUAL}/{order[0]}?blind=yes"
    page = shown(graded.page(TEACHER).get(start))
    assert f"Student {order[0]}" in page
    assert f'href="{MANUAL}/{order[1]}?blind=yes" rel="next"' in page
    assert not re.search(r"\b(ada|ben|cleo|Ada L\.)\b", page)
    assert location(give(graded, start, "1")).startswith(f"{MANUAL}/{order[1]}?blind=yes&")
    other = blind_numbers("cs101", "ps2", CLASS)
    assert set(other.values()).isdisjoint(NUMBERS.values())
    assert blind_numbers("cs101", "ps1", reversed(CLASS)) == NUMBERS


def test_one_cell_of_all_students_and_the_points_of_a_test(graded: Site, tmp_path: Path) -> None:
    page = shown(graded.page(TEACHER).get(f"{ADA}?only=test-answer"))
    assert "no cell needs a person" in page
    assert 'value="essay"' not in page
    test = {"cell": "test-answer"}
    assert location(give(graded, f"{ADA}?only=test-answer", "1", **test)).startswith(f"{ADA}?only")
    assert entry(tmp_path, "ada", "test-answer") == (1.0, "")
    refused = shown(give(graded, BEN, "1", "No.", **test), 400)
    assert "nbgrader stores no comment on test-answer." in refused
    assert entry(tmp_path, "ben", "test-answer") == (None, "")


def test_the_notebook_is_shown_without_scripts_and_with_links_to_cells(graded: Site) -> None:
    answer = graded.page(TEACHER).get(f"{ADA}/notebook/ps1")
    assert answer.status_code == 200
    assert "Because ada says so." in answer.text
    assert 'id="cell-id=essay"' in answer.text
    assert "sandbox;" in answer.headers["content-security-policy"]
    assert graded.page(TEACHER).get(f"{ADA}/notebook/other").status_code == 404


def test_students_see_none_of_it(graded: Site) -> None:
    for address in (MANUAL, ADA, f"{ADA}/notebook/ps1"):
        assert graded.page(STUDENT1).get(address).status_code == 403, address
    assert send(graded, ADA, STUDENT1, points="3", **ESSAY).status_code == 403
    assert graded.page(TEACHER).get(f"{MANUAL}/1").status_code == 404


def test_an_archived_course_is_read_only(graded: Site, tmp_path: Path) -> None:
    graded.world.web.courses.administration.archive(TEACHER, "cs101")
    page = shown(graded.page(TEACHER).get(ADA))
    assert "archived and read-only" in page
    assert "data-cell" not in page
    refused = graded.page(ADMIN).get(MANUAL)
    assert refused.status_code == 303
    assert "is archived" in send(graded, ADA, points="3", **ESSAY).text
    assert entry(tmp_path, "ada") == (None, "")


def test_the_rest_call_gives_points_and_refuses_what_has_changed(
    graded: Site, tmp_path: Path
) -> None:
    body = {"person": "ada", **ESSAY, "points": 2, "comment": "Good."}
    made = graded.api(TEACHER).put(f"{PS1}/points", json=body)
    assert made.status_code == 200, made.text
    assert (made.json()["score"], made.json()["by_hand"]) == (2.0, True)
    old = {**body, "points": 1, "seen": {"points": None, "comment": ""}}
    refused = graded.api(TEACHER).put(f"{PS1}/points", json=old)
    assert refused.status_code == 409
    assert "by teacher at" in refused.json()["error"]["message"]
    assert graded.api(STUDENT1).put(f"{PS1}/points", json=body).status_code == 403
    assert entry(tmp_path, "ada") == (2.0, "Good.")
