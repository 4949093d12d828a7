"""REST routes for rehearsals of a course."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...schemas.coursework.rehearsals import RehearsalIn, RehearsalOut, RehearsalsOut
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


@router.get("/{rehearsal}", summary="One rehearsal")
def rehearsal(web: Carrel, who: Reader, course: CourseName, rehearsal: RehearsalId) -> RehearsalOut:
    """For teachers and graders: what works and what breaks, and its progress."""
    return web.courses.rehearsals.one(who, course, rehearsal)
