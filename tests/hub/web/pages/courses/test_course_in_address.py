"""What an address names below a course belongs to that course, for changes and for reading."""

from __future__ import annotations

import pytest

from carrel.courses.feedback.delivery import GRADE
from carrel.courses.files.bundle import FileBundle
from carrel.hub.schemas.grading import GradeOut

from ....doubles import ADMIN, STUDENT1
from ...course_samples import PS1, course, files
from ...fakes import API, PREFIX
from ...site import Site, site
from .teacher_page import send

__all__ = ["course", "site"]

OTHER = f"{PREFIX}course/cs202"


@pytest.fixture
def two_courses(course: Site) -> Site:
    """student1 has feedback and a regrade request in cs101; cs202 has an assignment ps1 too."""
    made = course.api().post(f"{API}/courses/cs101/clone", json={"name": "cs202"})
    assert made.status_code == 201, made.text
    release = {"files": files(ps1_ipynb=b"{}"), "due": "2027-02-01 18:00", "force": True}
    course.api().post(f"{API}/courses/cs202/assignments/ps1/release", json=release)
    for each in ("cs101", "cs202"):
        roster = {"students": "student\nstudent1\n"}
        assert course.api().put(f"{API}/courses/{each}/roster", json=roster).status_code == 200
    body = {"files": files(ps1_ipynb=b"{}"), "incomplete": True}
    sent = course.api(STUDENT1).post(f"{PS1}/submissions", json=body).json()
    assert sent["id"] == 1
    grade = GradeOut(person="student1", submission=1, number=1, cells=[])
    bundle = FileBundle.of([("ps1.html", b"<p>Hm."), (GRADE, grade.model_dump_json().encode())])
    services = course.world.web.courses
    services.delivery.deliver(ADMIN, services.access.store.submission(1), bundle)
    asked = course.api(STUDENT1).post(f"{PS1}/regrades", json={"text": "Why?"})
    assert asked.json()["id"] == 1
    return course


def test_a_regrade_request_of_another_course_is_not_changed(two_courses: Site) -> None:
    for who, address in (
        (ADMIN, f"{OTHER}/regrades/1"),
        (STUDENT1, f"{OTHER}/assignment/ps1/regrades/1"),
        (STUDENT1, f"{PREFIX}course/cs101/assignment/ps2/regrades/1"),
    ):
        for do in ("answer", "close"):
            answer = send(two_courses, address, who, do=do, text="Because.")
            assert answer.status_code == 404, (address, do)
    (found,) = two_courses.api().get(f"{API}/courses/cs101/regrades").json()["regrades"]
    assert found["closed_at"] is None
    assert [each["text"] for each in found["messages"]] == ["Why?"]


def test_a_submission_of_another_course_is_not_chosen(two_courses: Site) -> None:
    store = two_courses.world.web.courses.access.store
    for counts in (False, True):
        store.choose(store.submission(1), counts=counts)
        before = store.chosen("cs101", "ps1")
        for place in ("cs202/grading/ps1", "cs101/grading/ps2"):
            do = "uncount" if counts else "count"
            answer = send(two_courses, f"{PREFIX}course/{place}", ADMIN, do=do, submission="1")
            assert answer.status_code == 404, (place, do)
        assert store.chosen("cs101", "ps1") == before


def test_a_submission_is_read_at_the_address_of_its_assignment_and_student(
    two_courses: Site,
) -> None:
    for who, address in (
        (STUDENT1, "assignment/ps1/submission/1"),
        (STUDENT1, "assignment/ps1/feedback/1/ps1.html"),
        (STUDENT1, "assignment/ps1/feedback/1/ps1.html/content"),
        (ADMIN, "grading/ps1/student/student1/file/1/ps1.ipynb"),
    ):
        page = two_courses.page(who)
        assert page.get(f"{PREFIX}course/cs101/{address}").status_code == 200, address
        assert page.get(f"{OTHER}/{address}").status_code == 404, address
        other = address.replace("/ps1/", "/ps2/", 1)
        assert page.get(f"{PREFIX}course/cs101/{other}").status_code == 404, other
        other = address.replace("student1", "student2")
        if other != address:
            assert page.get(f"{PREFIX}course/cs101/{other}").status_code == 404, other
