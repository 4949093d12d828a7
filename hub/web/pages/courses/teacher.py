"""The pages of one course for teachers and graders: assignments, extensions, people."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....errors import CarrelError, InvalidInput
from ....records.edits import ChangedMeanwhile
from ....schemas.admin import ConsequencesOut
from ....schemas.courses import MemberOut, NewAccountsOut
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import CourseName
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.uploads import Uploads
from ...dependencies.visitors import Form, Guest, html
from ...forms.course import clone_body, extension_body, outage_body, person_or_section
from ...forms.fields import no_action
from ...html.urls import course_url
from ...security.access import Visitor
from .courses import TOP

router = APIRouter(include_in_schema=False, prefix="/course/{course}")


# -- the overview -----------------------------------------------------------------------------


@router.get("/teach")
def teach(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """Show the course, for teachers and graders."""
    return _overview(web, visitor, course)


@router.post("/teach")
def change(web: Carrel, visitor: Guest, course: CourseName, fields: Form) -> Response:
    """Grant or revoke an extension, record an outage, archive or copy, depending on the button."""
    try:
        target, effect = _do(web, visitor, course, fields)
    except CarrelError as error:
        return _overview(web, visitor, course, error=error, filled=fields)
    if effect is not None:
        return _overview(web, visitor, course, effect=effect)
    return RedirectResponse(course_url(target, "teach") + TOP, SEE_OTHER)


def _do(
    web: WebContext, visitor: Visitor, course: str, fields: Mapping[str, str]
) -> tuple[str, ConsequencesOut | None]:
    """Return the course to show next, and the message."""
    who, courses = visitor.identity, web.courses
    match fields.get("do", ""):
        case "extend":
            name = fields.get("assignment", "")[:64]
            return course, courses.deadlines.extend(who, course, name, extension_body(fields))
        case "take-back":
            name = fields.get("assignment", "")[:64]
            person, section = person_or_section(fields)
            return course, courses.deadlines.withdraw_extensions(
                who, course, name, person=person, section=section
            )
        case "outage":
            return course, courses.deadlines.record_outage(who, outage_body(fields, course))
        case "archive":
            courses.administration.archive(who, course)
        case "bring-back":
            courses.administration.archive(who, course, undo=True)
        case "clone":
            return courses.administration.clone(who, course, clone_body(fields)).name, None
        case _:
            raise no_action()
    return course, None


def _overview(
    web: WebContext,
    visitor: Visitor,
    course: str,
    *,
    effect: ConsequencesOut | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    who, version = visitor.identity, version_for(web, filled, error)
    members = web.courses.roster.listed(who, course)
    here = [each for each in members if each.left_at is None]
    page = web.render_for(
        visitor,
        "courses/teach.html",
        version=version,
        course=web.courses.administration.show(who, course),
        assignments=web.courses.overview.assignments(who, course).assignments,
        prefixes=web.courses.prefixes.course(who, course).prefixes,
        sections=by_section(here),
        students=[each for each in here if each.role == "student"],
        left=len(members) - len(here),
        extensions=web.courses.deadlines.extensions(who, course).extensions,
        outages=[o for o in web.courses.deadlines.outages(who).outages if o.course in ("", course)],
        effect=effect,
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)


# -- people -----------------------------------------------------------------------------------


@router.get("/people")
def people(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """Show all people by section, including students who left."""
    return _people(web, visitor, course)


@router.post("/people")
def roster(web: Carrel, visitor: Guest, course: CourseName, sent: Uploads) -> Response:
    """Preview a roster or, when confirmed, apply it."""
    table = sent.fields.get("students", "")
    try:
        # A newly selected file replaces the one of the preview.
        chosen = sent.text("roster")
        apply = sent.fields.get("do") == "apply" and not chosen
        table = chosen or table
        if not table:
            raise InvalidInput(
                "No roster is selected.", accepted="Select a CSV file.", field="students"
            )
        effect = web.courses.roster.update(visitor.identity, course, table, dry_run=not apply)
    except ChangedMeanwhile as error:
        return _people(web, visitor, course, table=table, error=error)
    except CarrelError as error:
        return _people(web, visitor, course, error=error)
    if apply:
        return RedirectResponse(course_url(course, "people"), SEE_OTHER)
    return _people(web, visitor, course, effect=effect, table=table, filled=sent.fields)


@router.post("/people/accounts")
def create_accounts(web: Carrel, visitor: Guest, course: CourseName, _: Form) -> Response:
    """Create the missing accounts of the class, and show their passwords once."""
    try:
        created = web.courses.missing_accounts.create(visitor.identity, course)
    except CarrelError as error:
        return _people(web, visitor, course, error=error)
    return _people(web, visitor, course, created=created)


def _people(
    web: WebContext,
    visitor: Visitor,
    course: str,
    *,
    effect: ConsequencesOut | None = None,
    created: NewAccountsOut | None = None,
    table: str = "",
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    who, version = visitor.identity, version_for(web, filled, error)
    found = web.courses.roster.members(who, course)
    page = web.render_for(
        visitor,
        "courses/teach_people.html",
        version=version,
        course=web.courses.administration.show(who, course),
        teachers=found.teachers,
        without_account=found.without_account,
        created=created,
        sections=by_section([each for each in found.members if each.left_at is None]),
        left=[each for each in found.members if each.left_at is not None],
        effect=effect,
        table=table,
        error=error,
    )
    return html(page, error.http_status if error else 200)


def by_section(members: list[MemberOut]) -> list[tuple[str, list[MemberOut]]]:
    """Group members by section, in the order of the names; members without a section are last."""

    def section(member: MemberOut) -> tuple[bool, str]:
        return member.section == "", member.section

    return [
        (name, list(found)) for (_, name), found in groupby(sorted(members, key=section), section)
    ]
