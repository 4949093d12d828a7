"""Official checks on the pages of a teacher and of a student."""

from __future__ import annotations

from carrel.hub.provenance.official_check import verify_check
from carrel.hub.schemas.coursework.official_checks import (
    OFFICIAL_RESULT,
    OfficialCellOut,
    OfficialVerdictOut,
)

from .....courses.checks import came_out
from .....courses.notebook_samples import SOURCE
from ....doubles import STUDENT1, TEACHER
from ...course_samples import PS1, course
from ...fakes import PREFIX
from ...site import Site, site
from .teacher_page import send, shown

__all__ = ["course", "site"]

RELEASE = f"{PREFIX}course/cs101/release"
MINE = f"{PREFIX}course/cs101/assignment/ps1"


def test_a_teacher_allows_checks_and_a_student_runs_one(course: Site) -> None:
    assert 'id="official-check"' not in shown(course.page(STUDENT1).get(MINE))
    for number in ("", "0", "1000000", "x"):
        refused = send(course, f"{RELEASE}/official-checks", assignment="ps1", per_day=number)
        assert "is not a number of official checks a day" in shown(refused, 400)
    allowed = send(course, f"{RELEASE}/official-checks", assignment="ps1", per_day="1")
    assert allowed.headers["location"] == f"{RELEASE}?assignment=ps1#official-title"
    page = shown(course.page(STUDENT1).get(MINE))
    assert "Left today: 1 of 1." in page
    notebook = [("ps1.ipynb", SOURCE, "application/json")]
    asked = send(course, f"{MINE}/official-check", STUDENT1, files=notebook)
    assert asked.headers["location"] == f"{MINE}#official-checks-title"
    (check,) = course.api(STUDENT1).get(f"{PS1}/official-checks").json()["checks"]
    # The request is the teacher's: its log and its times are not for the student.
    assert course.page(STUDENT1).get(f"{PREFIX}requests/{check['id']}").status_code == 404
    cells = [OfficialCellOut(notebook="ps1", cell="test-answer", passed=True)]
    verdict = OfficialVerdictOut(passed=True, points=2.0, max_points=2.0, cells=cells)
    came_out(course.context, check["id"], verdict, name=OFFICIAL_RESULT)
    course.clock.now += 60
    live = course.page(STUDENT1).get(f"{MINE}/live/work").text
    assert "All tests pass, hidden ones included: 2 of 2 points." in live
    assert "test-answer" not in live
    assert "Left today: 0 of 1." in live
    receipt = f"{MINE}/official-check/{check['id']}/receipt"
    assert f'href="{receipt}"' in live
    saved = course.page(STUDENT1).get(receipt)
    assert verify_check(saved.content, course.context.signing_key.public).points == 2.0
    assert course.page(TEACHER).get(receipt).status_code == 404
    again = send(course, f"{MINE}/official-check", STUDENT1, files=notebook)
    assert "You have used your 1 official check of today." in shown(again, 409)
    teacher = shown(course.page(TEACHER).get(f"{RELEASE}?assignment=ps1"))
    assert "2 of 2" in teacher
    assert check["sha256"][:12] in teacher
    send(course, f"{RELEASE}/official-checks", assignment="ps1", do="off")
    assert 'id="official-check"' not in course.page(STUDENT1).get(MINE).text
