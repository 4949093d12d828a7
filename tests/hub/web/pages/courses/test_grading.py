"""The grading pages: the class, one student, feedback, late submissions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from carrel.courses.feedback.service import FeedbackService
from carrel.courses.files.bundle import FileBundle
from carrel.courses.model.records import CourseRole, Member
from carrel.courses.services import CourseServices
from carrel.hub.errors import CarrelError, Conflict
from carrel.hub.records.identity import Identity
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.schemas import LARGEST
from carrel.hub.web import TokenHolder
from carrel.hub.web.html.downloads import attachment
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE

from ....doubles import STUDENT1, TEACHER
from ...classes import fill
from ...course_samples import course
from ...fakes import API, PREFIX
from ...site import Site, site
from .teacher_page import GUS, send, shown

__all__ = ["course", "site"]

GRADING = f"{PREFIX}course/cs101/grading/ps1"


def services(site: Site) -> CourseServices:
    return site.world.web.courses


@pytest.fixture
def graded(course: Site) -> Site:
    """Eight students, in every state."""
    fill(services(course), TEACHER, 8)
    return course


def students(page: str) -> list[str]:
    return re.findall(r'<th scope="row">(?:<a [^>]*>)?(person\d+)', page)


def test_all_students_are_on_the_page_with_their_state(graded: Site) -> None:
    page = shown(graded.page(TEACHER).get(GRADING))
    assert students(page) == [f"person{number:03}" for number in range(8)]
    for words in (
        "All 10",
        "To review 1",
        "Not gradable 1",
        "Not graded yet 1",
        "Graded 3",
        "Too late to count 1",
        "Not submitted 3",
        "Student Number 7",
        'title="needs a person: A person reads this answer."',
    ):
        assert words in page, words
    assert f'href="{PREFIX}courses"' in page
    assert f'href="{PREFIX}course/cs101/teach"' in page


def test_what_cannot_be_graded_is_not_graded_by_hand(course: Site) -> None:
    fill(services(course), TEACHER, 4)
    page = shown(course.page(TEACHER).get(GRADING))
    assert "Not gradable 1" in page
    assert "Grade by hand" not in page
    assert course.page(TEACHER).get(f"{GRADING}/manual").status_code == 404
    assert course.page(TEACHER).get(f"{GRADING}/student/person003/preview").status_code == 404


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=NUMBER 7", ["person007"]),
        ("standing=graded", ["person005", "person006", "person007"]),
        ("standing=graded&section=red", ["person005", "person007"]),
        ("text=nobody", []),
    ],
    ids=["name", "state", "state and section", "nobody"],
)
def test_the_class_is_filtered_on_the_page_and_in_its_live_part(
    graded: Site, query: str, found: list[str]
) -> None:
    page = shown(graded.page(TEACHER).get(f"{GRADING}?{query}"))
    assert students(page) == found
    assert students(graded.page(TEACHER).get(f"{GRADING}/live?{query}").text) == found
    assert ("No student matches." in page) == (not found)
    watched = re.search(r'hx-get="([^"]*/live[^"]*)"', page)
    assert watched is not None
    assert students(graded.page(TEACHER).get(watched[1].replace("&amp;", "&")).text) == found


def test_one_question_is_chosen_from_those_that_there_are(graded: Site) -> None:
    page = shown(graded.page(TEACHER).get(GRADING))
    assert '<option value="test-answer">' in page
    graded.clock.pass_(1)
    assert send(graded, GRADING, do="grade", question="test-answer").status_code == 303
    run = graded.api(TEACHER).get(f"{API}/courses/cs101/assignments/ps1/grading").json()["run"]
    assert run["question"] == "test-answer"
    refused = shown(send(graded, GRADING, do="grade", question="q9"), 400)
    assert "no graded cell" in refused


def test_the_table_is_the_one_of_the_command(graded: Site) -> None:
    answer = graded.page(TEACHER).get(f"{GRADING}/csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == attachment("cs101-ps1.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["student"] for row in rows][-3:] == ["person007", "student1", "student2"]
    assert rows[-1]["score"] == "", "no submission"
    assert "ps1/test-answer" in rows[0]


def test_a_late_submission_can_count_and_be_reset_to_the_late_rule(graded: Site) -> None:
    place = f"{GRADING}/student/person001"
    page = shown(graded.page(TEACHER).get(place))
    assert "No submission counts: all arrived too late." in page
    (number,) = re.findall(r'name="submission" value="(\d+)"', page)
    asked = {"submission": number, "person": "person001", "back": "student"}
    done = send(graded, GRADING, do="count", **asked)
    assert (done.status_code, done.headers["location"]) == (303, place)
    assert "Not graded yet." in shown(graded.page(TEACHER).get(place))
    assert send(graded, GRADING, do="uncount", **asked).status_code == 303
    assert "No submission counts" in graded.page(TEACHER).get(place).text
    for nothing in ("x", str(LARGEST + 1)):
        assert send(graded, GRADING, do="count", submission=nothing).status_code == 400


def test_one_student_is_read_with_verdicts_receipts_and_files(graded: Site) -> None:
    place = f"{GRADING}/student/person005"
    page = shown(graded.page(TEACHER).get(place))
    for words in ("test-answer", "On time; this one is graded.", "SHA-256", "Student Number 5"):
        assert words in page
    assert f'href="{GRADING}/student/person004"' in page
    assert f'href="{GRADING}/student/person006"' in page
    (file,) = re.findall(r'href="([^"]*/file/[^"]*)"', page)
    answer = graded.page(TEACHER).get(file)
    assert answer.content == b"work of person005"
    assert answer.headers["content-disposition"] == attachment("ps1.ipynb")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert graded.page(TEACHER).get(f"{file}x").status_code == 404
    assert graded.page(TEACHER).get(f"{GRADING}/student/person000").status_code == 404


def test_other_users_cannot_read_it(graded: Site) -> None:
    scopes = frozenset({ACCESS_SCOPE})
    graded.world.sign_in.people["gus-oauth"] = TokenHolder(identity=GUS, scopes=scopes)
    gus = Member(course="cs101", person="gus", role=CourseRole.GRADER)
    services(graded).access.store.put_members("cs101", [gus])
    (sent,) = services(graded).access.store.submissions("cs101", "ps1", "person005")
    file = f"{GRADING}/student/person005/file/{sent.id}/ps1.ipynb"
    pages = [GRADING, f"{GRADING}/live", f"{GRADING}/csv", f"{GRADING}/student/person005", file]
    pages += [f"{GRADING}/student/person005/preview"]
    for page in pages:
        assert graded.page(GUS).get(page).status_code == 200, page
        assert graded.page(STUDENT1).get(page).status_code == 403, page
    people, stranger = graded.world.sign_in.people, Identity(name="stranger")
    people["stranger-oauth"] = replace(people["gus-oauth"], identity=stranger)
    for page in pages:
        assert graded.page(stranger).get(page).status_code == 404, page


def test_a_failed_run_shows_the_cause_and_what_to_do(graded: Site) -> None:
    run = graded.api(TEACHER).get(f"{API}/courses/cs101/assignments/ps1/grading").json()["run"]
    RequestTermination(graded.context).cancel(TEACHER, run["request"], "The wrong assignment.")
    page = shown(graded.page(TEACHER).get(GRADING))
    assert 'id="interrupted"' in page
    assert "The wrong assignment." in page
    assert "Grade again to continue with the other 1." in page


def test_the_distribution_and_the_pass_rate_are_shown(graded: Site) -> None:
    page = shown(graded.page(TEACHER).get(GRADING))
    assert "4 students graded: mean" in page
    assert 'class="histogram"' in page
    assert "of 3</td>" in page, "one cell has no points yet"
    made = graded.api(TEACHER).get(f"{API}/courses/cs101/assignments/ps1/statistics").json()
    assert sum(made["distribution"]["bars"]) == 4


def test_the_gradebook_has_all_students_and_assignments(graded: Site) -> None:
    place = f"{PREFIX}course/cs101/gradebook"
    page = shown(graded.page(TEACHER).get(place))
    assert len(re.findall(r'<th scope="row">person', page)) == 8
    assert f'href="{GRADING}/student/person005"' in page
    assert "provisional" in page
    assert ">not graded</a>" in page
    answer = graded.page(TEACHER).get(f"{place}/csv")
    assert answer.headers["content-disposition"] == attachment("cs101-gradebook.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["ps1"] for row in rows if row["student"] == "person001"] == [""]
    assert float(rows[5]["ps1"]) == float(rows[5]["total"])
    for address in (place, f"{place}/csv"):
        assert graded.page(STUDENT1).get(address).status_code == 403


# -- feedback ---------------------------------------------------------------------------------


@pytest.fixture
def giving(graded: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The students who get feedback, without nbgrader's pages."""
    given: list[str] = []

    def give(
        self: FeedbackService, who: Identity, course: str, name: str, people: Iterable[str]
    ) -> Iterator[tuple[str, CarrelError | None]]:
        sent = {each.person: each for each in self.access.store.submissions(course, name)}
        for person in people:
            if person == "person006":
                yield person, Conflict("What counts of person006 has not been graded.")
                continue
            given.append(person)
            self.delivery.deliver(who, sent[person], FileBundle.of([("ps1.html", person.encode())]))
            yield person, None

    monkeypatch.setattr(FeedbackService, "release_to_class", give)
    return given


def test_feedback_goes_to_all_graded_students_and_lists_errors(
    graded: Site, giving: list[str]
) -> None:
    assert "Release feedback to 4 students" in shown(graded.page(TEACHER).get(GRADING))
    page = shown(send(graded, f"{GRADING}/feedback", since=""))
    assert giving == ["person004", "person005", "person007"]
    assert "Done, except for:" in page
    assert ">person006</a>: What counts of person006 has not been graded." in page
    assert "3 of 6 have feedback; 1 student was graded since, or has none." in page
    graded.clock.pass_(1)
    again = shown(send(graded, f"{GRADING}/feedback", since="now"))
    assert giving[3:] == ["person004", "person005", "person007"]
    assert "Done, except for:" in again


def test_a_long_feedback_release_continues_by_itself(
    graded: Site, giving: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.hub.web.pages.courses.grading.RELEASE_SECONDS", -1.0)
    fields, rounds = {"since": "now"}, 0
    while True:
        graded.clock.pass_(1)
        page = graded.page(TEACHER).post(
            f"{GRADING}/feedback", data=fields, headers={"HX-Request": "true"}
        )
        assert page.status_code == 200
        rounds += 1
        found = re.search(r"hx-vals='([^']*)'", page.text)
        if found is None:
            break
        fields = json.loads(found[1])
        assert rounds < 10
    assert ">person006</a>: it could not be generated" in page.text
    assert giving == ["person004", "person005", "person007"]


def test_one_student_gets_feedback(graded: Site, giving: list[str]) -> None:
    done = send(graded, f"{GRADING}/feedback", person="person005")
    assert (done.status_code, giving) == (303, ["person005"])
    assert done.headers["location"] == f"{GRADING}/student/person005"
    assert "Release feedback again" in shown(graded.page(TEACHER).get(done.headers["location"]))
    refused = shown(send(graded, f"{GRADING}/feedback", person="person006"), 409)
    assert "has not been graded" in refused


def test_an_archived_course_is_read_and_not_graded(graded: Site) -> None:
    services(graded).administration.archive(TEACHER, "cs101")
    for address in (GRADING, f"{GRADING}/student/person005"):
        page = shown(graded.page(TEACHER).get(address))
        assert 'method="post"' not in page.partition("<main")[2], address
