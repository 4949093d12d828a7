"""The page that releases an assignment, or changes a released one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from .....courses.releases.messages import sentences
from .....courses.roster.access import GRADERS
from ....errors import CarrelError, InvalidInput
from ....records.edits import ChangedMeanwhile
from ....schemas.courses import AssignmentOut, ReleasedOut
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import CourseName
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.uploads import Uploads
from ...dependencies.visitors import Form, Guest, html
from ...forms.course import ReleaseForm, official_check_body, prefix_body
from ...forms.edits import merged
from ...html.urls import course_url
from ...security.access import Visitor
from .courses import TOP

router = APIRouter(include_in_schema=False, prefix="/course/{course}/release")


@router.get("")
def release_page(
    web: Carrel,
    visitor: Guest,
    course: CourseName,
    assignment: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Show an empty form, or that of an existing assignment."""
    version, known = version_for(web), _known(web, visitor, course, assignment)
    form = ReleaseForm() if known is None else ReleaseForm.of(known)
    return _page(web, visitor, course, form, known, version=version)


@router.post("")
def release(web: Carrel, visitor: Guest, course: CourseName, sent: Uploads) -> Response:
    """Release the assignment and show the report, or the form with the error.

    The same files do not make a new version, so that reloading the page is harmless.
    """
    form = ReleaseForm.filled(sent.fields)
    try:
        ungraded = sent.fields.get("ungraded") == "yes"
        body = form.body(sent.folder("files"), ungraded=ungraded)
        before = _known(web, visitor, course, form.assignment)
        if not body.files and (before is None or not before.version):
            raise InvalidInput(
                f"{form.assignment or 'The assignment'} has no files yet.",
                accepted="Select the source notebooks and their files.",
                field="files",
            )
        made = web.courses.assignments.release(visitor.identity, course, form.assignment, body)
    except CarrelError as error:
        version = version_for(web, sent.fields, error)
        known = _known(web, visitor, course, form.assignment)
        if known is not None and isinstance(error, ChangedMeanwhile):
            form = merged(form, ReleaseForm.of(known, error.later), ReleaseForm.of(known))
        return _page(web, visitor, course, form, known, error=error, version=version)
    version, known = version_for(web), _known(web, visitor, course, made.assignment)
    return _page(web, visitor, course, form, known, made=made, version=version)


@router.post("/withdraw")
def withdraw(web: Carrel, visitor: Guest, course: CourseName, fields: Form) -> Response:
    """Hide the assignment from students."""
    name = _named(fields)
    try:
        web.courses.assignments.withdraw(visitor.identity, course, name)
    except CarrelError as error:
        return _refused(web, visitor, course, fields, error)
    return _back(course, name, TOP)


@router.post("/official-checks")
def official_checks(web: Carrel, visitor: Guest, course: CourseName, fields: Form) -> Response:
    """Allow official checks of the assignment, or none."""
    name = _named(fields)
    try:
        if fields.get("do") == "off":
            web.courses.official_checks.forbid(visitor.identity, course, name)
        else:
            body = official_check_body(fields)
            web.courses.official_checks.allow(visitor.identity, course, name, body)
    except CarrelError as error:
        error.field = ""  # not of the form that releases
        return _refused(web, visitor, course, fields, error)
    return _back(course, name, "#official-title")


@router.post("/prefix")
def prefix(web: Carrel, visitor: Guest, course: CourseName, fields: Form) -> Response:
    """Switch the prefix of the assignment on or off, or delete what its job has compiled."""
    name = _named(fields)
    try:
        if fields.get("do") == "clear-cache":
            web.courses.prefixes.clear_compiled(visitor.identity, course, name)
        else:
            web.courses.prefixes.switch(visitor.identity, course, name, prefix_body(fields))
    except CarrelError as error:
        error.field = ""  # not of the form that releases
        return _refused(web, visitor, course, fields, error)
    return _back(course, name, "#prefix-title")


def _named(fields: Mapping[str, str]) -> str:
    return fields.get("assignment", "")[:64]


def _back(course: str, name: str, anchor: str) -> Response:
    page = course_url(course, "release")
    return RedirectResponse(f"{page}?{urlencode({'assignment': name})}{anchor}", SEE_OTHER)


def _refused(
    web: WebContext,
    visitor: Visitor,
    course: str,
    fields: Mapping[str, str],
    error: CarrelError,
) -> Response:
    """Return the page with an error of one of the forms that are about a released assignment."""
    version = version_for(web, fields, error)
    known = _known(web, visitor, course, _named(fields))
    form = ReleaseForm() if known is None else ReleaseForm.of(known)
    return _page(web, visitor, course, form, known, error=error, version=version)


def _known(web: WebContext, visitor: Visitor, course: str, name: str) -> AssignmentOut | None:
    """Return an assignment, or None if it does not exist. Raises Forbidden for students."""
    web.courses.access.membership(visitor.identity, course, GRADERS)
    found = web.courses.overview.assignments(visitor.identity, course).assignments
    return next((each for each in found if each.name == name), None)


def _page(
    web: WebContext,
    visitor: Visitor,
    course: str,
    form: ReleaseForm,
    known: AssignmentOut | None,
    *,
    made: ReleasedOut | None = None,
    error: CarrelError | None = None,
    version: str,
) -> Response:
    who = visitor.identity
    shown = made
    if shown is None and known is not None and known.version:
        shown = web.courses.assignments.released(who, course, known.name)
    page = web.render_for(
        visitor,
        "courses/release.html",
        version=version,
        course=web.courses.administration.show(who, course),
        form=replace(form, assignment=known.name) if known is not None else form,
        known=known,
        made=made,
        shown=shown,
        official=web.courses.official_checks.log(who, course, known.name) if known else None,
        shared=web.courses.prefixes.show(who, course, known.name) if known is not None else None,
        report=list(sentences(shown.report)) if shown is not None else [],
        error=error,
    )
    return html(page, error.http_status if error else 200)
