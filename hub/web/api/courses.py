"""REST routes for courses: rosters, assignments, submissions, grading and extensions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse

from ....courses.gradebook.statistics import statistics
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
    NewAccountsOut,
    OutageIn,
    OutagesOut,
    PrefixIn,
    PrefixOut,
    ReceiptOut,
    ReceiptsOut,
    ReleasedOut,
    ReleaseIn,
    RosterIn,
    SubmitIn,
)
from ...schemas.grading import (
    CellScoreOut,
    CourseGradebookOut,
    FeedbackIn,
    FeedbackOut,
    GradeIn,
    GradesOut,
    GradingOut,
    ManualPointsIn,
    RegradeIn,
    RegradeOut,
    RegradeReplyIn,
    RegradesOut,
    StatisticsOut,
)
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.course_paths import (
    AssignmentName,
    CourseName,
    DryRun,
    Person,
    RegradeId,
    Section,
    SubmissionId,
    Version,
    Whose,
)
from ..dependencies.edit_versions import etag
from ..openapi.description import ERRORS, body_of

router = APIRouter(responses=ERRORS, tags=["courses"], dependencies=[Depends(etag)])


# -- courses and their people -----------------------------------------------------------------


@router.get("/courses", summary="My courses")
def courses(web: Carrel, who: Reader) -> CoursesOut:
    """Courses in which the caller is a teacher, grader or student; all for administrators."""
    return web.courses.administration.courses(who)


@router.post(
    "/courses",
    status_code=201,
    response_model=CourseOut,
    responses={200: {"model": ConsequencesOut, "description": "For a dry run: the effect"}},
    summary="Create a course",
    openapi_extra=body_of(CourseIn),
)
def create(
    web: Carrel,
    who: Writer,
    body: Annotated[CourseIn, Depends(json_body(CourseIn))],
    dry_run: DryRun = False,
) -> CourseOut | JSONResponse:
    """For administrators. Creates the group with its quota, pins the image, and applies the roster.

    Members of an existing group stay, even if the roster does not list them; the answer names them.
    """
    if dry_run:
        return JSONResponse(web.courses.administration.preview(who, body).model_dump(mode="json"))
    return web.courses.administration.create(who, body)


@router.get("/courses/{course}", summary="One course")
def show(web: Carrel, who: Reader, course: CourseName) -> CourseOut:
    """404 for users without a role in the course."""
    return web.courses.administration.show(who, course)


@router.get("/courses/{course}/members", summary="The class")
def members(web: Carrel, who: Reader, course: CourseName) -> MembersOut:
    """For teachers and graders, by name, including students who left."""
    return web.courses.roster.members(who, course)


@router.put(
    "/courses/{course}/roster",
    summary="Apply a roster",
    openapi_extra=body_of(RosterIn),
)
def roster(
    web: Carrel,
    who: Writer,
    course: CourseName,
    body: Annotated[RosterIn, Depends(json_body(RosterIn))],
    dry_run: DryRun = False,
) -> ConsequencesOut:
    """For teachers. Students who are not listed leave the course; their submissions are kept."""
    return web.courses.roster.update(who, course, body.students, dry_run=dry_run)


@router.post("/courses/{course}/accounts", summary="Create the missing accounts of a class")
def create_accounts(web: Carrel, who: Writer, course: CourseName) -> NewAccountsOut:
    """For teachers, where accounts are Carrel's own. Repeat the call while some remain."""
    return web.courses.missing_accounts.create(who, course)


@router.post(
    "/courses/{course}/clone",
    status_code=201,
    summary="Copy a course",
    openapi_extra=body_of(CloneIn),
)
def clone(
    web: Carrel,
    who: Writer,
    course: CourseName,
    body: Annotated[CloneIn, Depends(json_body(CloneIn))],
) -> CourseOut:
    """For administrators. Copies quota, image and assignments, but not people."""
    return web.courses.administration.clone(who, course, body)


@router.put("/courses/{course}/archive", summary="Archive a course")
def archive(web: Carrel, who: Writer, course: CourseName) -> CourseOut:
    """For teachers. The course becomes read-only; nothing is deleted."""
    return web.courses.administration.archive(who, course)


@router.delete("/courses/{course}/archive", summary="Restore a course")
def bring_back(web: Carrel, who: Writer, course: CourseName) -> CourseOut:
    """For teachers. Ends the archived state."""
    return web.courses.administration.archive(who, course, undo=True)


# -- assignments ------------------------------------------------------------------------------


@router.get("/courses/{course}/assignments", summary="The assignments of a course")
def assignments(web: Carrel, who: Reader, course: CourseName) -> AssignmentsOut:
    """As the caller sees them: students with their own due date, state and receipts."""
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
    """For teachers: releases the files without solutions and hidden tests.

    The same files again are not a new version, so that the call is safe to repeat.
    """
    return web.courses.assignments.release(who, course, assignment, body)


@router.delete(
    "/courses/{course}/assignments/{assignment}/release",
    status_code=204,
    summary="Withdraw an assignment",
)
def withdraw(web: Carrel, who: Writer, course: CourseName, assignment: AssignmentName) -> None:
    """For teachers: students no longer see it. Submissions are kept; a release shows it again."""
    web.courses.assignments.withdraw(who, course, assignment)


@router.get(
    "/courses/{course}/assignments/{assignment}/prefix", summary="The prefix of an assignment"
)
def prefix(web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName) -> PrefixOut:
    """For teachers and graders: given cells that run once for all members, and what that saved."""
    return web.courses.prefixes.show(who, course, assignment)


@router.put(
    "/courses/{course}/assignments/{assignment}/prefix",
    summary="Switch the prefix of an assignment on or off",
    openapi_extra=body_of(PrefixIn),
)
def set_prefix(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[PrefixIn, Depends(json_body(PrefixIn))],
) -> PrefixOut:
    """For teachers: submits a job of the course that runs the given cells.

    Jobs of the course that begin with the same cells, on as many devices and in the same image, get
    a copy of its variables. One that has failed is tried again.
    """
    return web.courses.prefixes.switch(who, course, assignment, body)


@router.delete(
    "/courses/{course}/assignments/{assignment}/prefix/compile-cache",
    summary="Delete what the course has compiled",
)
def clear_prefix_cache(
    web: Carrel, who: Writer, course: CourseName, assignment: AssignmentName
) -> PrefixOut:
    """For teachers: jobs then load only what earlier jobs of their own user compiled.

    Running jobs have a copy of their own. A prefix that is computed anew has compiled code again.
    """
    return web.courses.prefixes.clear_compiled(who, course, assignment)


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
    summary="Grant an extension",
    openapi_extra=body_of(ExtensionIn),
)
def extend(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[ExtensionIn, Depends(json_body(ExtensionIn))],
) -> ConsequencesOut:
    """For teachers: to a student or a section. Extensions add up."""
    return web.courses.deadlines.extend(who, course, assignment, body)


@router.get("/courses/{course}/assignments/{assignment}/extensions", summary="The extensions")
def extensions(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> ExtensionsOut:
    """For teachers and graders, in the order in which they were granted."""
    return web.courses.deadlines.extensions(who, course, assignment)


@router.delete(
    "/courses/{course}/assignments/{assignment}/extensions", summary="Revoke an extension"
)
def take_time_back(
    *,
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    person: Person = "",
    section: Section = "",
) -> ConsequencesOut:
    """For teachers: all extensions of a student or a section for this assignment."""
    return web.courses.deadlines.withdraw_extensions(
        who, course, assignment, person=person, section=section
    )


# -- submissions ----------------------------------------------------------------------------


@router.post(
    "/courses/{course}/assignments/{assignment}/submissions",
    summary="Submit an assignment",
    openapi_extra=body_of(SubmitIn),
)
def submit(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[SubmitIn, Depends(json_body(SubmitIn))],
) -> ReceiptOut:
    """For students. The response comes after all files are stored; a refused submission stores
    nothing.

    The time of the server counts. Sending the files of the last submission again returns the same
    receipt, so that the call is safe to repeat.
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
    """The student's own; for teachers and graders those of all students or of one."""
    return web.courses.submissions.receipts(who, course, assignment, person=person)


@router.get("/submissions/{submission}", summary="One submission")
def handed_in(web: Carrel, who: Reader, submission: SubmissionId) -> HandedInOut:
    """A submission with its files, for its student, teachers and graders."""
    return web.courses.submissions.files(who, submission)


@router.put("/submissions/{submission}/counts", summary="Let a submission count")
def choose(web: Carrel, who: Writer, submission: SubmissionId) -> ReceiptOut:
    """For teachers: grade this submission, regardless of its time."""
    return web.courses.submissions.choose(who, submission, counts=True)


@router.delete("/submissions/{submission}/counts", summary="Apply the late rule again")
def unchoose(web: Carrel, who: Writer, submission: SubmissionId) -> ReceiptOut:
    """For teachers: the last submission on time counts, else the last that is not too late."""
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
    """For teachers and graders: runs as a request on the pool. Returns the open run for the same
    work, if any.
    """
    return web.courses.grading.start(who, course, assignment, body)


@router.get("/courses/{course}/assignments/{assignment}/grading", summary="Grades")
def grades(web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName) -> GradesOut:
    """For teachers and graders: the newest run, and the result of each student and cell."""
    return web.courses.grading.grades(who, course, assignment)


@router.get("/courses/{course}/assignments/{assignment}/statistics", summary="Statistics")
def class_statistics(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> StatisticsOut:
    """For teachers and graders: the distribution of points, and how many passed each cell."""
    return statistics(web.courses.grading.grades(who, course, assignment))


@router.get("/courses/{course}/gradebook", summary="The gradebook of a course")
def gradebook(web: Carrel, who: Reader, course: CourseName) -> CourseGradebookOut:
    """For teachers and graders: the points of all students in all released assignments."""
    return web.courses.gradebook.table(who, course)


@router.put(
    "/courses/{course}/assignments/{assignment}/points",
    summary="Give points by hand",
    openapi_extra=body_of(ManualPointsIn),
)
def set_points(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[ManualPointsIn, Depends(json_body(ManualPointsIn))],
) -> CellScoreOut:
    """For teachers and graders: points and a comment for one cell, in nbgrader's gradebook."""
    return web.courses.manual_grading.set_points(who, course, assignment, body)


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
    """For teachers and graders: releases the feedback of one student. Replaces earlier feedback."""
    return web.courses.feedback.release(who, course, assignment, body.person)


@router.get("/submissions/{submission}/feedback", summary="Feedback")
def feedback(web: Carrel, who: Reader, submission: SubmissionId) -> FeedbackOut:
    """The feedback on a submission, for its student, teachers and graders."""
    return FeedbackOut(files=web.courses.delivery.files(who, submission))


# -- regrade requests -------------------------------------------------------------------------


@router.post(
    "/courses/{course}/assignments/{assignment}/regrades",
    status_code=201,
    summary="Ask for a regrade",
    openapi_extra=body_of(RegradeIn),
)
def ask_for_regrade(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[RegradeIn, Depends(json_body(RegradeIn))],
) -> RegradeOut:
    """For students with feedback: about one cell or all of them. Safe to repeat."""
    return web.courses.regrades.ask(who, course, assignment, body)


@router.get("/courses/{course}/regrades", summary="Regrade requests")
def regrades(web: Carrel, who: Reader, course: CourseName) -> RegradesOut:
    """Open ones first: for teachers and graders those of the course, for students their own."""
    return RegradesOut(regrades=web.courses.regrades.requests(who, course))


@router.post(
    "/regrades/{regrade}/messages",
    summary="Answer a regrade request",
    openapi_extra=body_of(RegradeReplyIn),
)
def answer_regrade(
    web: Carrel,
    who: Writer,
    regrade: RegradeId,
    body: Annotated[RegradeReplyIn, Depends(json_body(RegradeReplyIn))],
) -> RegradeOut:
    """For its student, teachers and graders: adds a message, closes the request, or both."""
    return web.courses.regrades.reply(who, regrade, body)


# -- outages ----------------------------------------------------------------------------------


@router.get("/outages", summary="Outages")
def outages(web: Carrel, who: Reader) -> OutagesOut:
    """Outages that apply to all courses, and those of the caller's courses."""
    return web.courses.deadlines.outages(who)


@router.post(
    "/outages", status_code=201, summary="Record an outage", openapi_extra=body_of(OutageIn)
)
def record_outage(
    web: Carrel, who: Writer, body: Annotated[OutageIn, Depends(json_body(OutageIn))]
) -> ConsequencesOut:
    """For administrators. Assignments due in it or within a day after it are due later by its
    length.
    """
    return web.courses.deadlines.record_outage(who, body)
