"""Regrade requests: a student asks, a teacher answers, and nothing is lost on bad input."""

from __future__ import annotations

import pytest

from carrel.courses.feedback.delivery import GRADE
from carrel.courses.files.bundle import FileBundle
from carrel.courses.model.records import RegradeRequest
from carrel.courses.store import SqlCourseStore
from carrel.hub.schemas.grading import CellScoreOut, GradeOut, RegradeReplyIn
from carrel.hub.web import TokenHolder

from ....doubles import STUDENT1, STUDENT2, TEACHER
from ...course_samples import PS1, course, files
from ...fakes import ALL_SCOPES, API, PREFIX
from ...page_checks import check_page
from ...site import Site, site
from .teacher_page import send, shown

__all__ = ["course", "site"]

ASSIGNMENT = f"{PREFIX}course/cs101/assignment/ps1"
MINE = f"{ASSIGNMENT}/regrades"
ALL = f"{PREFIX}course/cs101/regrades"


def submit(site: Site) -> int:
    body = {"files": files(ps1_ipynb=b"{}"), "incomplete": True}
    return int(site.api(STUDENT1).post(f"{PS1}/submissions", json=body).json()["id"])


@pytest.fixture
def given(course: Site) -> Site:
    """student1 has feedback."""
    services, number = course.world.web.courses, submit(course)
    cell = CellScoreOut(
        notebook="ps1", cell="essay", word="by hand", sentence="", score=1.0, max_score=3.0
    )
    grade = GradeOut(person="student1", submission=number, number=1, cells=[cell])
    bundle = FileBundle.of([("ps1.html", b"<p>Hm."), (GRADE, grade.model_dump_json().encode())])
    sent = services.access.store.submission(number)
    services.delivery.deliver(TEACHER, sent, bundle)
    people = course.world.sign_in.people
    people["student2-oauth"] = TokenHolder(identity=STUDENT2, scopes=ALL_SCOPES)
    people["student2"] = TokenHolder(identity=STUDENT2, scopes=ALL_SCOPES)
    return course


def test_a_student_asks_and_a_teacher_answers(given: Site) -> None:
    page = given.page(STUDENT1).get(ASSIGNMENT).text
    assert f'href="{MINE}"' in page
    assert 'id="standing">graded' in page
    asked = send(given, MINE, STUDENT1, about="ps1/essay", text="Why <b>1</b>?\r\nI said it.")
    assert asked.headers["location"] == f"{MINE}#regrade-1"
    page = shown(given.page(STUDENT1).get(MINE))
    assert "Why &lt;b&gt;1&lt;/b&gt;?\nI said it." in page

    page = shown(given.page(TEACHER).get(ALL))
    assert "to answer" in page
    assert f'href="{ALL}/1"' in page
    done = send(given, f"{ALL}/1", do="close", text="True: 3 points.")
    assert done.headers["location"] == f"{ALL}/1"
    page = shown(given.page(TEACHER).get(f"{ALL}/1"))
    assert "Closed by teacher" in page
    assert "<textarea" not in page
    page = shown(given.page(STUDENT1).get(MINE))
    assert "True: 3 points." in page
    assert "Closed by teacher" in page
    late = shown(send(given, f"{MINE}/1", STUDENT1, do="answer", text="Thanks."), 409)
    assert "This request was closed by teacher." in late


def test_a_refused_request_gets_one_sentence_and_keeps_the_text(given: Site) -> None:
    long = "x" * (1 << 20)
    for text, status, sentence in (
        ("  ", 400, "The message is empty."),
        (long, 413, "The message has 1,048,576 characters."),
    ):
        page = shown(send(given, MINE, STUDENT1, about="", text=text), status)
        assert sentence in page
        assert text.strip() in page
    assert "no graded cell" in shown(
        send(given, MINE, STUDENT1, about="ps1/other", text="Why?"), 400
    )
    send(given, MINE, STUDENT1, about="", text="Why?")
    assert send(given, MINE, STUDENT1, about="", text="Why?").status_code == 303
    again = shown(send(given, MINE, STUDENT1, about="", text="Well?"), 409)
    assert "A request of yours about ps1 is open." in again
    assert len(given.api(STUDENT1).get(f"{API}/courses/cs101/regrades").json()["regrades"]) == 1
    refused = shown(send(given, f"{ALL}/1", do="answer", text=long), 413)
    assert long in refused


def test_without_feedback_or_in_an_archived_course_no_one_asks(given: Site) -> None:
    answer = given.api(STUDENT2).post(f"{PS1}/regrades", json={"text": "Why?"})
    assert answer.status_code == 409
    assert "There is no feedback on ps1 yet." in answer.text
    page = given.page(STUDENT2).get(MINE)
    check_page(page.text)
    assert "You can ask once you have feedback on it." in page.text
    made = given.api(STUDENT1).post(f"{PS1}/regrades", json={"text": "Why?"}).json()
    given.world.web.courses.administration.archive(TEACHER, "cs101")
    refused = shown(send(given, MINE, STUDENT1, about="ps1/essay", text="And this?"), 409)
    assert "cs101 is archived: it can only be read." in refused
    assert "Why?" in refused
    messages = f"{API}/regrades/{made['id']}/messages"
    assert given.api(TEACHER).post(messages, json={"close": True}).status_code == 409
    assert "<textarea" not in shown(given.page(TEACHER).get(f"{ALL}/{made['id']}"))


def test_threads_are_private(given: Site) -> None:
    made = given.api(STUDENT1).post(f"{PS1}/regrades", json={"text": "Why?"}).json()
    messages = f"{API}/regrades/{made['id']}/messages"
    assert given.api(STUDENT2).post(messages, json={"text": "Me too."}).status_code == 404
    assert given.api(STUDENT2).get(f"{API}/courses/cs101/regrades").json() == {"regrades": []}
    assert given.page(STUDENT1).get(f"{ALL}/{made['id']}").status_code == 403
    assert given.page(STUDENT1).get(ALL).status_code == 403
    asked = given.api(TEACHER).post(f"{PS1}/regrades", json={"text": "Why?"})
    assert asked.status_code == 403
    for _ in range(2):
        answered = given.api(TEACHER).post(messages, json={"text": "Because."})
        assert [each["text"] for each in answered.json()["messages"]] == ["Why?", "Because."]


def test_a_request_that_is_closed_at_the_same_time_takes_no_message(
    given: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = given.api(STUDENT1).post(f"{PS1}/regrades", json={"text": "Why?"}).json()
    read = SqlCourseStore.regrade

    def closed_after_reading(store: SqlCourseStore, regrade_id: int) -> RegradeRequest:
        found = read(store, regrade_id)
        monkeypatch.undo()
        given.world.web.courses.regrades.reply(TEACHER, regrade_id, RegradeReplyIn(close=True))
        return found

    monkeypatch.setattr(SqlCourseStore, "regrade", closed_after_reading)
    messages = f"{API}/regrades/{made['id']}/messages"
    late = given.api(STUDENT1).post(messages, json={"text": "And?", "close": True})
    assert late.status_code == 409
    assert "This request was closed by teacher." in late.text
    (found,) = given.api(STUDENT1).get(f"{API}/courses/cs101/regrades").json()["regrades"]
    assert found["closed_by"] == "teacher"
    assert [each["text"] for each in found["messages"]] == ["Why?"]
