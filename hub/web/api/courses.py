"""REST about courses: rosters, assignments, what is handed out and in, and more time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse

from ...schemas.admin import ConsequencesOut
from ...schemas.courses import (
    AssignmentsOut,
    CloneIn,
    CourseIn,
    CourseOut,
    CoursesOut,
    ExtensionIn,
    ExtensionsOut,
    HandedInOut,
    HandOutOut,
    MembersOut,
    OutageIn,
    OutagesOut,
    ReceiptOut,
    ReceiptsOut,
    ReleasedOut,
    ReleaseIn,
    RosterIn,
    SubmitIn,
)
from ...schemas.grading import FeedbackIn, FeedbackOut, GradeIn, GradesOut, GradingOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.course_paths import (
    AssignmentName,
    CourseName,
    DryRun,
    Person,
    Section,
    SubmissionId,
    Version,
    Whose,
)
from ..openapi.description import ERRORS, body_of

router = APIRouter(responses=ERRORS, tags=["courses"])


# -- courses and their people -----------------------------------------------------------------


@router.get("/courses", summary="My courses")
def courses(web: Carrel, who: Reader) -> CoursesOut:
    """Those in which the caller is a teacher, a grader or a student; administrators see all."""
    return web.courses.administration.courses(who)


@router.post(
    "/courses",
    status_code=201,
    response_model=CourseOut,
    responses={200: {"model": ConsequencesOut, "description": "In a dry run: what it would make"}},
    summary="Make a course",
    openapi_extra=body_of(CourseIn),
)
def create(
    web: Carrel,
    who: Writer,
    body: Annotated[CourseIn, Depends(json_body(CourseIn))],
    dry_run: DryRun = False,
) -> CourseOut | JSONResponse:
    """For administrators. Makes the group with its quota, pins the image, takes the roster.

    Of a group that is there nobody leaves: whom the roster lacks is named, and stays.
    """
    if dry_run:
        return JSONResponse(web.courses.administration.preview(who, body).model_dump(mode="json"))
    return web.courses.administration.create(who, body)


@router.get("/courses/{course}", summary="One course")
def show(web: Carrel, who: Reader, course: CourseName) -> CourseOut:
    """To who has no role in it, it does not exist."""
    return web.courses.administration.show(who, course)


@router.get("/courses/{course}/members", summary="The class")
def members(web: Carrel, who: Reader, course: CourseName) -> MembersOut:
    """For teachers and graders, by name; also those who have left."""
    return web.courses.roster.members(who, course)


@router.put(
    "/courses/{course}/roster",
    summary="Make the class what a roster says",
    openapi_extra=body_of(RosterIn),
)
def roster(
    web: Carrel,
    who: Writer,
    course: CourseName,
    body: Annotated[RosterIn, Depends(json_body(RosterIn))],
    dry_run: DryRun = False,
) -> ConsequencesOut:
    """For teachers. Who is not on it leaves; what they handed in is kept."""
    return web.courses.roster.update(who, course, body.students, dry_run=dry_run)


@router.post(
    "/courses/{course}/clone",
    status_code=201,
    summary="Make a course like another",
    openapi_extra=body_of(CloneIn),
)
def clone(
    web: Carrel,
    who: Writer,
    course: CourseName,
    body: Annotated[CloneIn, Depends(json_body(CloneIn))],
) -> CourseOut:
    """For administrators. Quota, image and assignments come along, people do not."""
    return web.courses.administration.clone(who, course, body)


@router.put("/courses/{course}/archive", summary="Archive a course")
def archive(web: Carrel, who: Writer, course: CourseName) -> CourseOut:
    """For teachers. From then on it can only be read; nothing is deleted."""
    return web.courses.administration.archive(who, course)


@router.delete("/courses/{course}/archive", summary="Bring a course back")
def bring_back(web: Carrel, who: Writer, course: CourseName) -> CourseOut:
    """For teachers: it goes on where it was."""
    return web.courses.administration.archive(who, course, undo=True)


# -- assignments ------------------------------------------------------------------------------


@router.get("/courses/{course}/assignments", summary="The assignments of a course")
def assignments(web: Carrel, who: Reader, course: CourseName) -> AssignmentsOut:
    """As the caller has them: a student with the own due time, state and receipts."""
    return web.courses.overview.assignments(who, course)


@router.post(
    "/courses/{course}/assignments/{assignment}/release",
    summary="Release an assignment",
    openapi_extra=body_of(ReleaseIn),
)
def release(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[ReleaseIn, Depends(json_body(ReleaseIn))],
) -> ReleasedOut:
    """For teachers: solutions and hidden tests are taken out, and the rest is handed out.

    The same files again are no new version, so that it may be repeated.
    """
    return web.courses.assignments.release(who, course, assignment, body)


@router.get("/courses/{course}/assignments/{assignment}/hand-out", summary="Fetch an assignment")
def hand_out(
    *,
    web: Carrel,
    who: Reader,
    course: CourseName,
    assignment: AssignmentName,
    version: Version = None,
) -> HandOutOut:
    """The files of a version, as students get them."""
    return web.courses.assignments.fetch(who, course, assignment, version=version)


@router.post(
    "/courses/{course}/assignments/{assignment}/extensions",
    summary="Give more time",
    openapi_extra=body_of(ExtensionIn),
)
def extend(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[ExtensionIn, Depends(json_body(ExtensionIn))],
) -> ConsequencesOut:
    """For teachers: to a person or to a section. Several extensions add up."""
    return web.courses.deadlines.extend(who, course, assignment, body)


@router.get("/courses/{course}/assignments/{assignment}/extensions", summary="Who has more time")
def extensions(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> ExtensionsOut:
    """For teachers and graders, in the order in which they were given."""
    return web.courses.deadlines.extensions(who, course, assignment)


@router.delete("/courses/{course}/assignments/{assignment}/extensions", summary="Take time back")
def take_time_back(
    *,
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    person: Person = "",
    section: Section = "",
) -> ConsequencesOut:
    """For teachers: all the extensions of a person or of a section, for this assignment."""
    return web.courses.deadlines.withdraw_extensions(
        who, course, assignment, person=person, section=section
    )


# -- what comes in ----------------------------------------------------------------------------


@router.post(
    "/courses/{course}/assignments/{assignment}/submissions",
    summary="Hand in",
    openapi_extra=body_of(SubmitIn),
)
def submit(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[SubmitIn, Depends(json_body(SubmitIn))],
) -> ReceiptOut:
    """For students. Answered once all of it is stored for good; refused, nothing of it is.

    The server's clock decides. The same files as the last time are that submission, with the
    same receipt, so that a lost answer may safely be asked for again.
    """
    return web.courses.submissions.submit(who, course, assignment, body)


@router.get("/courses/{course}/assignments/{assignment}/submissions", summary="Receipts")
def receipts(
    *,
    web: Carrel,
    who: Reader,
    course: CourseName,
    assignment: AssignmentName,
    person: Whose = "",
) -> ReceiptsOut:
    """A student's own; for teachers and graders everybody's, or those of one person."""
    return web.courses.submissions.receipts(who, course, assignment, person=person)


@router.get("/submissions/{submission}", summary="What was handed in")
def handed_in(web: Carrel, who: Reader, submission: SubmissionId) -> HandedInOut:
    """A submission with its files, for its student and for those who grade it."""
    return web.courses.submissions.files(who, submission)


@router.put("/submissions/{submission}/counts", summary="Let a submission count")
def choose(web: Carrel, who: Writer, submission: SubmissionId) -> ReceiptOut:
    """For teachers: this one is graded, whatever the clock said."""
    return web.courses.submissions.choose(who, submission, counts=True)


@router.delete("/submissions/{submission}/counts", summary="Leave it to the clock again")
def unchoose(web: Carrel, who: Writer, submission: SubmissionId) -> ReceiptOut:
    """For teachers: the last one on time counts, else the last that is not too late."""
    return web.courses.submissions.choose(who, submission, counts=False)


# -- grading ----------------------------------------------------------------------------------


@router.post(
    "/courses/{course}/assignments/{assignment}/grading",
    summary="Grade",
    openapi_extra=body_of(GradeIn),
)
def grade(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[GradeIn, Depends(json_body(GradeIn))],
) -> GradingOut:
    """For teachers and graders: a request on the pool. One of the same that is open is that one."""
    return web.courses.grading.start(who, course, assignment, body)


@router.get("/courses/{course}/assignments/{assignment}/grading", summary="Grades")
def grades(web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName) -> GradesOut:
    """For teachers and graders: the newest run, and a verdict for each student and cell."""
    return web.courses.grading.grades(who, course, assignment)


@router.post(
    "/courses/{course}/assignments/{assignment}/feedback",
    summary="Release feedback",
    openapi_extra=body_of(FeedbackIn),
)
def release_feedback(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[FeedbackIn, Depends(json_body(FeedbackIn))],
) -> ConsequencesOut:
    """For teachers and graders: one student gets it. Again, it is in place of what was there."""
    return web.courses.feedback.release(who, course, assignment, body.person)


@router.get("/submissions/{submission}/feedback", summary="Feedback")
def feedback(web: Carrel, who: Reader, submission: SubmissionId) -> FeedbackOut:
    """On a submission, for its student and for those who grade it."""
    return FeedbackOut(files=web.courses.delivery.files(who, submission))


# -- outages ----------------------------------------------------------------------------------


@router.get("/outages", summary="Outages")
def outages(web: Carrel, who: Reader) -> OutagesOut:
    """Those of all courses, and of the caller's."""
    return web.courses.deadlines.outages(who)


@router.post(
    "/outages", status_code=201, summary="Record an outage", openapi_extra=body_of(OutageIn)
)
def record_outage(
    web: Carrel, who: Writer, body: Annotated[OutageIn, Depends(json_body(OutageIn))]
) -> ConsequencesOut:
    """For administrators. What was due in it, or within a day after it, is due so much later."""
    return web.courses.deadlines.record_outage(who, body)
