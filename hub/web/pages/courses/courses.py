"""The list of courses, and the form that creates one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....errors import CarrelError
from ....schemas.admin import ConsequencesOut
from ....schemas.courses import CourseOut
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.uploads import Uploaded, Uploads
from ...dependencies.visitors import Guest, html
from ...forms.course import CourseForm
from ...forms.image_choice import image_choices
from ...html.urls import course_url
from ...security.access import Visitor

TOP = "#main"
"""Fragment of redirects: without one, browsers keep that of the form's URL."""
_STAFF = ("teacher", "grader")

router = APIRouter(include_in_schema=False, prefix="/courses")


@router.get("")
def courses(web: Carrel, visitor: Guest) -> Response:
    """List the courses in which the visitor is a teacher or a grader; all for administrators."""
    return _page(web, visitor, CourseForm())


@router.post("")
def create(web: Carrel, visitor: Guest, sent: Uploads) -> Response:
    """Preview a course or, when confirmed, create it."""
    who, form = visitor.identity, CourseForm.filled(sent.fields)
    try:
        form = _with_roster(form, sent)
        body = form.body()
        if sent.fields.get("do") != "create":
            effect = web.courses.administration.preview(who, body)
            return _page(web, visitor, form, effect=effect, filled=sent.fields)
        made = web.courses.administration.create(who, body)
    except CarrelError as error:
        return _page(web, visitor, form, error=error, filled=sent.fields)
    if made.notes:
        return _page(web, visitor, CourseForm(), made=made)
    return RedirectResponse(course_url(made.name, "teach") + TOP, SEE_OTHER)


def _with_roster(form: CourseForm, sent: Uploaded) -> CourseForm:
    """Return the form with the newly selected roster, or else the one of the preview."""
    return replace(form, students=sent.text("roster") or form.students)


def _page(
    web: WebContext,
    visitor: Visitor,
    form: CourseForm,
    *,
    effect: ConsequencesOut | None = None,
    made: CourseOut | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    who, version = visitor.identity, version_for(web, filled, error)
    mine = [each for each in web.courses.administration.courses(who).courses if each.role in _STAFF]
    known = {course.name for course in mine}
    groups = [group.name for group in web.context.store.groups()] if who.admin else []
    page = web.render_for(
        visitor,
        "courses/courses.html",
        version=version,
        courses=mine,
        teachers=sorted({who.name, *(name for course in mine for name in course.teachers)}),
        others=[name for name in web.usage.teaches(who) if name not in known],
        form=form,
        effect=effect,
        made=made,
        error=error,
        groups=groups,
        images=image_choices(web, who, groups, form.image) if who.admin else [],
    )
    return html(page, error.http_status if error else 200)
