"""Grading runs as requests on the pool: who may start them, their work, and the grades."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.courses.grading import duration
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
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student,name,section\nstudent1,Ada,blue\nstudent2,Ben,red\n")
    made.release()
    made.submit("one", STUDENT1)
    made.submit("two", STUDENT2)
    return made


def granted(site: CourseSite, request: str) -> LeaseRecord:
    """Its lease, with what runs under it."""
    store, now = site.services.access.context.store, site.clock()
    (lease,) = store.grant([Start(request_id=request, devices=())], now=now, lease_seconds=60.0)
    store.launch(lease.id, now=now)
    return lease


def verdict(submission: int, score: float | None = 2.0, cell: str = "test-answer") -> VerdictIn:
    word = "needs a person" if score is None else "passed"
    given = CellScoreIn(
        notebook="ps1", cell=cell, word=word, sentence="Good.", score=score, max_score=2.0
    )
    return VerdictIn(submission=submission, seconds=0.5, cells=[given])


def works(site: CourseSite, lease: LeaseRecord) -> list[str]:
    return [each.person for each in site.services.grading.order(lease.id).works]


def test_a_grading_run_is_a_request_of_the_teacher_who_started_it(site: CourseSite) -> None:
    run = site.services.grading.start(
        TEACHER, "cs101", "ps1", GradeIn(deadline=site.clock() + 3600)
    )
    record = site.services.access.context.store.request(run.request)
    assert (record.kind, record.owner, record.group) == (Kind.GRADING, "teacher", "cs101")
    assert (record.devices, record.deadline) == (0, site.clock() + 3600)
    assert (run.done, run.total, run.state) == (0, 2, "queued")
    assert site.services.grading.start(TEACHER, "cs101", "ps1", ALL).request == run.request
    assert (
        site.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="student2")).total == 1
    )
    assert site.lines()[-2:] == [("teacher", "grade", "cs101/ps1")] * 2


def test_a_class_is_graded_in_the_image_of_the_course(site: CourseSite) -> None:
    site.backend.built = CATALOGUE
    site.services.administration.create(
        ADMIN, CourseIn(name="ml", teachers=["teacher"], image="torch", students=CLASS)
    )
    assert site.services.access.image_of(site.services.access.store.course("ml")) == NEW
    content = files({"ps1.ipynb": SOURCE})
    site.services.assignments.release(TEACHER, "ml", "ps1", ReleaseIn(files=content, due=""))
    site.services.submissions.submit(STUDENT1, "ml", "ps1", SubmitIn(files=content))
    run = site.services.grading.start(TEACHER, "ml", "ps1", ALL)
    assert site.services.grading.order(granted(site, run.request).id).image == NEW

    site.backend.built = ()
    with pytest.raises(InvalidInput, match="There is no image"):
        site.services.grading.start(TEACHER, "ml", "ps1", GradeIn(person="student1"))


def test_a_course_without_an_image_is_graded_in_the_one_that_its_sessions_get(
    site: CourseSite,
) -> None:
    run = site.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    lease = granted(site, run.request).id
    assert site.services.grading.order(lease).image == ""
    site.backend.built = CATALOGUE
    assert site.services.grading.order(lease).image == BASE


def test_a_run_continues_with_submissions_without_verdict(site: CourseSite) -> None:
    run = site.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    lease = granted(site, run.request)
    assert works(site, lease) == ["student1", "student2"]
    first = site.services.grading.order(lease.id).works[0].submission
    assert site.services.grading.store_verdict(lease.id, verdict(first))
    assert not site.services.grading.store_verdict(lease.id, verdict(first, 0.0))
    assert works(site, lease) == ["student2"]
    ada, ben = site.services.grading.grades(TEACHER, "cs101", "ps1").grades
    assert (ada.person, ada.full_name, ada.score, ada.why_not) == ("student1", "Ada", 2.0, "")
    assert (ben.score, ben.graded_at, ben.why_not) == (0.0, None, "Not graded yet.")

    store = site.services.access.context.store
    cause = Cause(code=CauseCode.CANCELLED, message="Enough.")
    store.apply(run.request, lifecycle.stop, State.CANCELLED, cause, now=site.clock())
    store.apply_to_lease(lease.id, lifecycle.finish, now=site.clock(), charge_until=site.clock())
    with pytest.raises(StaleEpoch):
        site.services.grading.store_verdict(lease.id, verdict(first + 1))
    again = site.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    assert (again.request != run.request, again.total) == (True, 1)
    assert works(site, granted(site, again.request)) == ["student2"]


def test_one_question_is_graded_again_and_the_rest_is_kept(site: CourseSite) -> None:
    run = site.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="student1"))
    lease = granted(site, run.request)
    (work,) = site.services.grading.order(lease.id).works
    site.services.grading.store_verdict(lease.id, verdict(work.submission, None, "essay"))
    wanted = GradeIn(person="student1", question="test-answer")
    second = granted(site, site.services.grading.start(TEACHER, "cs101", "ps1", wanted).request)
    assert site.services.grading.order(second.id).question == "test-answer"
    site.services.grading.store_verdict(second.id, verdict(work.submission, 1.0))
    ada = site.services.grading.grades(TEACHER, "cs101", "ps1").grades[0]
    assert [(each.cell, each.score) for each in ada.cells] == [
        ("essay", None),
        ("test-answer", 1.0),
    ]
    assert (ada.score, ada.max_score) == (1.0, 4.0)


def test_lateness_costs_points(site: CourseSite) -> None:
    site.clock.now = course_site.DUE_AT + 3600
    late = site.submit("late", STUDENT1)
    site.services.submissions.choose(TEACHER, late.id, counts=True)
    run = site.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="student1"))
    lease = granted(site, run.request)
    (work,) = site.services.grading.order(lease.id).works
    assert (work.submission, work.penalty) == (late.id, 0.1)
    site.services.grading.store_verdict(lease.id, verdict(work.submission))
    ada = site.services.grading.grades(TEACHER, "cs101", "ps1").grades[0]
    assert (ada.score, ada.penalty) == (1.8, 0.1)


def test_a_killed_worker_does_not_end_the_run(site: CourseSite) -> None:
    run = site.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    lease = granted(site, run.request)
    told = {"code": "command_failed", "message": "`python` was ended by SIGKILL"}
    event = NewEvent(seq=1, at=site.clock(), kind="ended", data=told)
    context = site.services.access.context
    AttemptReports(context).store_events(lease.id, [event])
    assert context.store.request(run.request).state is State.STARTING


def test_a_run_that_is_being_stopped_has_no_time_left(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duration, "expected", lambda *_: 30.0)
    run = site.services.grading.start(TEACHER, "cs101", "ps1", ALL)
    assert run.seconds_left == 30.0
    granted(site, run.request)
    limit = Cause(code=CauseCode.TIME_LIMIT, message="It reached its time limit of 1 h.")
    context = site.services.access.context
    context.store.apply(run.request, lifecycle.stop, State.TIMED_OUT, limit, now=site.clock())
    stopping = site.services.grading.grades(TEACHER, "cs101", "ps1").run
    assert stopping is not None
    assert (stopping.state, stopping.seconds_left, stopping.most_seconds_left) == (
        "stopping",
        None,
        None,
    )


def test_runs_that_cannot_be_graded_are_refused_with_a_sentence(site: CourseSite) -> None:
    with pytest.raises(Forbidden):
        site.services.grading.start(STUDENT1, "cs101", "ps1", ALL)
    with pytest.raises(Forbidden):
        site.services.grading.grades(STUDENT1, "cs101", "ps1")
    with pytest.raises(InvalidInput, match="no graded cell 'q9'") as wrong:
        site.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(question="q9"))
    assert wrong.value.accepted == "One of: test-answer."
    site.release("ps2")
    with pytest.raises(InvalidInput, match="No submission for ps2 counts"):
        site.services.grading.start(TEACHER, "cs101", "ps2", ALL)
    with pytest.raises(NotFound):
        site.services.grading.start(TEACHER, "cs101", "ps1", GradeIn(person="nobody"))
