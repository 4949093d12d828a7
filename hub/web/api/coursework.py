"""REST routes for students: check one's own work, and read one's grades."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from ...schemas.checks import CheckOut, ChecksOut
from ...schemas.courses import SubmitIn
from ...schemas.grading import MyGradeOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.course_paths import AssignmentName, CourseName
from ..openapi.description import ERRORS, body_of

router = APIRouter(
    responses=ERRORS, tags=["courses"], prefix="/courses/{course}/assignments/{assignment}"
)


@router.post("/checks", summary="Check your work", openapi_extra=body_of(SubmitIn))
def check(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[SubmitIn, Depends(json_body(SubmitIn))],
) -> CheckOut:
    """Runs the visible tests as grading does, as a request on the pool. The result does not count.

    Without files it checks the latest submission. The same files again return the check in
    progress.
    """
    return web.courses.checks.start(who, course, assignment, body)


@router.get("/checks", summary="My checks")
def checks(web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName) -> ChecksOut:
    """The caller's own checks of the last day, newest first."""
    return web.courses.checks.recent(who, course, assignment)


@router.get("/my-grade", summary="My grade")
def my_grade(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> MyGradeOut:
    """For students: the points by cell, as of the last release of feedback."""
    return web.courses.delivery.own_grade(who, course, assignment)
