"""ngshare's REST API, for nbgrader's exchange: ``…/api/v1/exchange``.

Its clients send forms, and read ``success`` and ``message`` in every response.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from ....courses.ngshare.forms import NgshareForm
from ....courses.ngshare.service import NgshareService
from ...errors import InvalidInput
from ...schemas.names import USER_LENGTH
from ...schemas.ngshare import (
    DoneOut,
    InstructorsOut,
    NamesOut,
    SentListOut,
    StudentsOut,
    TakenOut,
    TreeOut,
    WhoSuccessOut,
)
from ..dependencies.bodies import form_fields
from ..dependencies.callers import Reader, Writer
from ..dependencies.context import web_of

_FORM = "application/x-www-form-urlencoded"
_PARTS = "multipart/form-data"
"""Content type of a form with files, as `curl -F` sends it; ngshare accepts both."""
_MOST_FIELDS = 20

CourseId = Annotated[str, Path(max_length=64)]
AssignmentId = Annotated[str, Path(max_length=64)]
StudentId = Annotated[str, Path(max_length=USER_LENGTH)]
ListOnly = Annotated[str, Query(max_length=10)]
Timestamp = Annotated[str, Query(max_length=100)]

# Not part of the description of Carrel's API: ngshare documents it.
router = APIRouter(prefix="/exchange", include_in_schema=False)


async def _exchange(request: Request) -> NgshareService:
    return NgshareService(web_of(request).courses)


async def _fields(request: Request) -> dict[str, str]:
    """Read the fields of a form; large ones are parsed outside the event loop."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if not body:
        return {}
    if kind == _PARTS:
        parts = await request.form(max_fields=_MOST_FIELDS, max_part_size=len(body))
        return {name: value for name, value in parts.items() if isinstance(value, str)}
    if kind != _FORM:
        raise InvalidInput(
            f"The body is of the type {kind[:60] or 'nothing'!r}.",
            accepted=f"A form: 'Content-Type: {_FORM}', or {_PARTS}.",
        )
    return dict(await run_in_threadpool(form_fields, body, _MOST_FIELDS))


Exchange = Annotated[NgshareService, Depends(_exchange)]
Fields = Annotated[dict[str, str], Depends(_fields)]


def _form(fields: dict[str, str]) -> NgshareForm:
    return NgshareForm(
        files=fields.get("files"),
        timestamp=fields.get("timestamp"),
        source=fields.get("source"),
        due=fields.get("due"),
        version=fields.get("version"),
    )


# -- courses and people -----------------------------------------------------------------------


@router.get("/courses", response_model_exclude_none=True)
def courses(at: Exchange, who: Reader) -> NamesOut:
    return NamesOut(courses=at.courses(who))


@router.get("/instructors/{course}")
def instructors(at: Exchange, who: Reader, course: CourseId) -> InstructorsOut:
    return InstructorsOut(instructors=at.instructors(who, course))


@router.get("/instructor/{course}/{name}")
def instructor(at: Exchange, who: Reader, course: CourseId, name: StudentId) -> WhoSuccessOut:
    return WhoSuccessOut(**dict(at.instructor(who, course, name)))


@router.get("/students/{course}")
def students(at: Exchange, who: Reader, course: CourseId) -> StudentsOut:
    return StudentsOut(students=at.students(who, course))


@router.get("/student/{course}/{name}")
def student(at: Exchange, who: Reader, course: CourseId, name: StudentId) -> WhoSuccessOut:
    return WhoSuccessOut(**dict(at.student(who, course, name)))


# -- assignments ------------------------------------------------------------------------------


@router.get("/assignments/{course}", response_model_exclude_none=True)
def assignments(at: Exchange, who: Reader, course: CourseId) -> NamesOut:
    return NamesOut(assignments=at.assignments(who, course))


@router.get("/assignment/{course}/{name}", response_model_exclude_none=True)
def fetch(
    at: Exchange, who: Reader, course: CourseId, name: AssignmentId, list_only: ListOnly = "false"
) -> TreeOut:
    return at.fetch(who, course, name, list_only=list_only == "true")


@router.post("/assignment/{course}/{name}")
def release(
    at: Exchange, who: Writer, course: CourseId, name: AssignmentId, fields: Fields
) -> DoneOut:
    force = fields.get("force") == "true"
    at.release(who, course, name, _form(fields), force=force)
    return DoneOut()


@router.delete("/assignment/{course}/{name}")
def withdraw(at: Exchange, who: Writer, course: CourseId, name: AssignmentId) -> DoneOut:
    at.withdraw(who, course, name)
    return DoneOut()


# -- submissions and feedback -----------------------------------------------------------------


@router.get("/submissions/{course}/{name}")
def submissions(at: Exchange, who: Reader, course: CourseId, name: AssignmentId) -> SentListOut:
    return SentListOut(submissions=at.submissions(who, course, name))


@router.get("/submissions/{course}/{name}/{student}")
def submissions_of(
    at: Exchange, who: Reader, course: CourseId, name: AssignmentId, student: StudentId
) -> SentListOut:
    return SentListOut(submissions=at.submissions(who, course, name, student))


@router.post("/submission/{course}/{name}")
def submit(
    at: Exchange, who: Writer, course: CourseId, name: AssignmentId, fields: Fields
) -> TakenOut:
    return at.submit(who, course, name, _form(fields))


@router.get("/submission/{course}/{name}/{student}", response_model_exclude_none=True)
def collect(
    *,
    at: Exchange,
    who: Reader,
    course: CourseId,
    name: AssignmentId,
    student: StudentId,
    timestamp: Timestamp = "",
    list_only: ListOnly = "false",
) -> TreeOut:
    only = list_only == "true"
    return at.collect(who, course, name, student, timestamp=timestamp, list_only=only)


@router.post("/feedback/{course}/{name}/{student}")
def upload_feedback(
    *,
    at: Exchange,
    who: Writer,
    course: CourseId,
    name: AssignmentId,
    student: StudentId,
    fields: Fields,
) -> DoneOut:
    at.upload_feedback(who, course, name, student, _form(fields))
    return DoneOut()


@router.get("/feedback/{course}/{name}/{student}", response_model_exclude_none=True)
def feedback(
    *,
    at: Exchange,
    who: Reader,
    course: CourseId,
    name: AssignmentId,
    student: StudentId,
    timestamp: Timestamp = "",
    list_only: ListOnly = "false",
) -> TreeOut:
    form = NgshareForm(timestamp=timestamp)
    return at.feedback(who, course, name, student, form, list_only=list_only == "true")
