"""Grading as a request on the pool: who may ask, what a run has to do, and what came out."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.errors import Forbidden, InvalidInput, NotFound, StaleEpoch
from carrel.hub.records.events import NewEvent
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Kind
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.courses import CourseIn, ReleaseIn, SubmitIn
from carrel.hub.schemas.grading import CellScoreIn, GradeIn, VerdictIn
from carrel.hub.transitions import lifecycle

from ...hub.doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from ...hub.images import BASE, CATALOGUE, NEW
from .. import course_site
from ..course_site import CourseSite, files
from ..notebook_samples import SOURCE

ALL = GradeIn()
CLASS = "student,name\nstudent1,Ada\n"


@pytest.fixture
def kit(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student,name,section\nstudent1,Ada,blue\nstudent2,Ben,red\n")
    made.release()
    made.submit("one", STUDENT1)
    made.submit("two", STUDENT2)
    return made


def granted(kit: CourseSite, request: str) -> LeaseRecord:
    """Its lease, with what runs under it."""
    store, now = kit.services.access.context.store, kit.clock()
    (lease,) = store.grant([Start(request_id=request, devices=())], now=now, lease_seconds=60.0)
    store.launch(lease.id, now=now)
    return lease


def verdict(submission: int, score: float | None = 2.0, cell: str = "test-answer") -> VerdictIn:
    word = "needs a person" if score is None else "passed"
    given = CellScoreIn(
        notebook="ps1", cell=cell, word=word, sentence="Good.", score=score, max_score=2.0
    )
    return VerdictIn(submission=submission, seconds=0.5, cells=[given])


def works(kit: CourseSite, lease: LeaseRecord) -> list[str]:
    return [each.person for each in kit.services.grading.order(lease.id).works]


def test_a_class_is_graded_as_a_request_of_who_asked(kit: CourseSite) -> None:
    run = kit.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(deadline=kit.clock() + 3600))
    record = kit.services.access.context.store.request(run.request)
    assert (record.kind, record.owner, record.group) == (Kind.GRADING, "teacher", "cs101")
    assert (record.devices, record.deadline) == (0, kit.clock() + 3600)
    assert (run.done, run.total, run.state) == (0, 2, "queued")
    assert kit.services.grading.start(TEACHER, "cs101", "ps1", ALL).request == run.request
    assert (
        kit.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="student2")).total == 1
    )
    assert kit.lines()[-2:] == [("teacher", "grade", "cs101/ps1")] * 2


def test_it_is_graded_in_the_image_of_the_course(kit: CourseSite) -> None:
    kit.backend.built = CATALOGUE
    kit.services.administration.create(
        ADMIN, CourseIn(name="ml", teachers=["teacher"], image="torch", students=CLASS)
    )
    assert kit.services.access.image_of(kit.services.access.store.course("ml")) == NEW
    content = files({"ps1.ipynb": SOURCE})
    kit.services.assignments.release(TEACHER, "ml", "ps1", ReleaseIn(files=content, due=""))
    kit.services.submissions.submit(STUDENT1, "ml", "ps1", SubmitIn(files=content))
    run = kit.services.grading.start(TEACHER, "ml", "ps1", ALL)
    assert kit.services.grading.order(granted(kit, run.request).id).image == NEW

    kit.backend.built = ()
    with pytest.raises(InvalidInput, match="There is no image"):
        kit.services.grading.start(TEACHER, "ml", "ps1", GradeIn(person="student1"))


def test_a_course_without_an_image_is_graded_in_the_one_that_its_sessions_get(
    kit: CourseSite,
) -> None:
    run = kit.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    lease = granted(kit, run.request).id
    assert kit.services.grading.order(lease).image == ""
    kit.backend.built = CATALOGUE
    assert kit.services.grading.order(lease).image == BASE


def test_a_run_goes_on_with_what_has_no_verdict(kit: CourseSite) -> None:
    run = kit.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    lease = granted(kit, run.request)
    assert works(kit, lease) == ["student1", "student2"]
    first = kit.services.grading.order(lease.id).works[0].submission
    assert kit.services.grading.store_verdict(lease.id, verdict(first))
    assert not kit.services.grading.store_verdict(lease.id, verdict(first, 0.0))
    assert works(kit, lease) == ["student2"]
    ada, ben = kit.services.grading.grades(TEACHER, "cs101", "ps1").grades
    assert (ada.person, ada.full_name, ada.score, ada.why_not) == ("student1", "Ada", 2.0, "")
    assert (ben.score, ben.graded_at, ben.why_not) == (0.0, None, "Not graded yet.")

    store = kit.services.access.context.store
    cause = Cause(code=CauseCode.CANCELLED, message="Enough.")
    store.apply(run.request, lifecycle.stop, State.CANCELLED, cause, now=kit.clock())
    store.apply_to_lease(lease.id, lifecycle.finish, now=kit.clock(), charge_until=kit.clock())
    with pytest.raises(StaleEpoch):
        kit.services.grading.store_verdict(lease.id, verdict(first + 1))
    again = kit.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    assert (again.request != run.request, again.total) == (True, 1)
    assert works(kit, granted(kit, again.request)) == ["student2"]


def test_one_question_is_graded_anew_and_the_rest_stays(kit: CourseSite) -> None:
    run = kit.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="student1"))
    lease = granted(kit, run.request)
    (work,) = kit.services.grading.order(lease.id).works
    kit.services.grading.store_verdict(lease.id, verdict(work.submission, None, "essay"))
    wanted = GradeIn(person="student1", question="test-answer")
    second = granted(kit, kit.services.grading.start(TEACHER, "cs101", "ps1", wanted).request)
    assert kit.services.grading.order(second.id).question == "test-answer"
    kit.services.grading.store_verdict(second.id, verdict(work.submission, 1.0))
    ada = kit.services.grading.grades(TEACHER, "cs101", "ps1").grades[0]
    assert [(each.cell, each.score) for each in ada.cells] == [
        ("essay", None),
        ("test-answer", 1.0),
    ]
    assert (ada.score, ada.max_score) == (1.0, 4.0)


def test_lateness_is_taken_off(kit: CourseSite) -> None:
    kit.clock.now = course_site.DUE_AT + 3600
    late = kit.submit("late", STUDENT1)
    kit.services.submissions.choose(TEACHER, late.id, counts=True)
    run = kit.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="student1"))
    lease = granted(kit, run.request)
    (work,) = kit.services.grading.order(lease.id).works
    assert (work.submission, work.penalty) == (late.id, 0.1)
    kit.services.grading.store_verdict(lease.id, verdict(work.submission))
    ada = kit.services.grading.grades(TEACHER, "cs101", "ps1").grades[0]
    assert (ada.score, ada.penalty) == (1.8, 0.1)


def test_a_grader_that_was_torn_off_is_no_end_of_the_run(kit: CourseSite) -> None:
    run = kit.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    lease = granted(kit, run.request)
    told = {"code": "command_failed", "message": "`python` was ended by SIGKILL"}
    event = NewEvent(seq=1, at=kit.clock(), kind="ended", data=told)
    context = kit.services.access.context
    AttemptReports(context).store_events(lease.id, [event])
    assert context.store.request(run.request).state is State.STARTING


def test_what_cannot_be_graded_is_said(kit: CourseSite) -> None:
    with pytest.raises(Forbidden):
        kit.services.grading.start(STUDENT1, "cs101", "ps1", ALL)
    with pytest.raises(Forbidden):
        kit.services.grading.grades(STUDENT1, "cs101", "ps1")
    with pytest.raises(InvalidInput, match="no graded cell 'q9'") as wrong:
        kit.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(question="q9"))
    assert wrong.value.accepted == "One of: test-answer."
    kit.release("ps2")
    with pytest.raises(InvalidInput, match="No submission for ps2 counts"):
        kit.services.grading.start(TEACHER, "cs101", "ps2", ALL)
    with pytest.raises(NotFound):
        kit.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="nobody"))
