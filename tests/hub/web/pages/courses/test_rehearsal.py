"""The page of rehearsals: empty, in progress, and with what breaks."""

from __future__ import annotations

from carrel.hub.schemas.coursework.rehearsals import (
    REHEARSAL_RESULT,
    RehearsalFindingOut,
    RehearsalResultOut,
)

from .....courses.checks import came_out
from ....doubles import STUDENT1, TEACHER
from ...course_samples import COURSE, course
from ...fakes import PREFIX
from ...site import Site, site
from .teacher_page import send, shown

__all__ = ["course", "site"]

PAGE = f"{PREFIX}course/cs101/rehearsal"


def test_a_teacher_rehearses_and_reads_what_breaks(course: Site) -> None:
    assert "has not been rehearsed yet" in shown(course.page(TEACHER).get(PAGE))
    assert course.page(STUDENT1).get(PAGE).status_code == 403
    begun = send(course, PAGE, assignment="ps1")
    assert begun.headers["location"] == f"{PAGE}#rehearsal-title"
    page = shown(course.page(TEACHER).get(PAGE))
    assert "0 of 1 assignment done." in page
    assert "<progress" in page
    (made,) = course.api(TEACHER).get(f"{COURSE}/rehearsals").json()["rehearsals"]
    (one,) = made["assignments"]
    found = RehearsalFindingOut(part="hand-out", notebook="ps1", cell="cell 1", error="<b>Gone")
    result = RehearsalResultOut(findings=[found], max_points=2.0)
    came_out(course.context, one["requests"][0], result, name=REHEARSAL_RESULT)
    live = course.page(TEACHER).get(f"{PAGE}/live").text
    assert "1 of 1 assignment broken: ps1." in live
    assert "&lt;b&gt;Gone" in live
    shown_one = course.api(TEACHER).get(f"{COURSE}/rehearsals/{made['id']}").json()
    assert (shown_one["ended"], shown_one["works"]) == (True, False)
    again = send(course, PAGE, image="base", assignment="ps1")
    assert "not in images" in shown(again, 400)


def test_a_teacher_rehearses_at_set_times(course: Site) -> None:
    wrong = send(course, PAGE, every="cron", cron="at night", zone="UTC")
    assert "is not a cron expression" in shown(wrong, status=400)
    made = send(course, PAGE, every="day", cron_at="03:00", zone="Europe/Berlin", assignment="ps1")
    assert made.headers["location"] == f"{PAGE}#schedules-title"
    page = shown(course.page(TEACHER).get(PAGE))
    assert 'list="zones" data-zone' in page
    assert "Rehearsal of ps1 of cs101" in page
    assert "every day at 03:00" in page
    (found,) = course.api(TEACHER).get(f"{COURSE}/rehearsals/schedules").json()["schedules"]
    assert (found["cron"], found["zone"]) == ("0 3 * * *", "Europe/Berlin")
    own = shown(course.page(TEACHER).get(f"{PREFIX}schedules"))
    assert "course/cs101/rehearsal" in own
    assert 'value="run"' not in own
    send(course, f"{PAGE}/schedules", id=found["id"], do="pause")
    assert ">Resume<" in shown(course.page(TEACHER).get(PAGE))
    send(course, f"{PAGE}/schedules", id=found["id"], do="resume")
    assert ">Pause<" in shown(course.page(TEACHER).get(PAGE))
    assert send(course, f"{PAGE}/schedules", id=found["id"], do="x").status_code == 400
    send(course, f"{PAGE}/schedules", id=found["id"], do="remove")
    assert course.api(TEACHER).get(f"{COURSE}/rehearsals/schedules").json()["schedules"] == []
