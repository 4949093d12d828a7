"""REST routes for rehearsals of a course."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...schemas.coursework.rehearsals import (
    RehearsalIn,
    RehearsalOut,
    RehearsalScheduleIn,
    RehearsalsOut,
)
from ...schemas.schedules import ScheduleOut, SchedulesOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.course_paths import CourseName
from ..openapi.description import ERRORS, body_of

RehearsalId = Annotated[str, Path(max_length=64, description="The `id` of a rehearsal.")]

router = APIRouter(responses=ERRORS, tags=["courses"], prefix="/courses/{course}/rehearsals")


@router.post("", summary="Rehearse a course", openapi_extra=body_of(RehearsalIn))
def rehearse(
    web: Carrel,
    who: Writer,
    course: CourseName,
    body: Annotated[RehearsalIn, Depends(json_body(RehearsalIn))],
) -> RehearsalOut:
    """For teachers: runs every solution and hand-out on an image, as opportunistic requests.

    No points of students change. The same call again returns the rehearsal in progress.
    """
    return web.courses.rehearsals.start(who, course, body)


@router.get("", summary="Rehearsals of a course")
def rehearsals(web: Carrel, who: Reader, course: CourseName) -> RehearsalsOut:
    """For teachers and graders: the last rehearsals, newest first."""
    return web.courses.rehearsals.recent(who, course)


@router.post(
    "/schedules",
    status_code=201,
    summary="Rehearse a course at set times",
    openapi_extra=body_of(RehearsalScheduleIn),
)
def add_schedule(
    web: Carrel,
    who: Writer,
    course: CourseName,
    body: Annotated[RehearsalScheduleIn, Depends(json_body(RehearsalScheduleIn))],
) -> ScheduleOut:
    """For teachers: a schedule of yours, which every teacher of the course may change.

    `/schedules/{id}` pauses, resumes and removes it. It is paused when you do not teach the course
    any more, and belongs to the teacher who resumes it.
    """
    return web.rehearsal_schedules.create(who, course, body)


@router.get("/schedules", summary="Schedules of a course's rehearsals")
def schedules(web: Carrel, who: Reader, course: CourseName) -> SchedulesOut:
    """For teachers and graders: those of all teachers, oldest first."""
    return web.rehearsal_schedules.all(who, course)


@router.get("/{rehearsal}", summary="One rehearsal")
def rehearsal(web: Carrel, who: Reader, course: CourseName, rehearsal: RehearsalId) -> RehearsalOut:
    """For teachers and graders: what works and what breaks, and its progress."""
    return web.courses.rehearsals.one(who, course, rehearsal)
