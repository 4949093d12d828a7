"""The pages of users for administrators: all of them, and one with groups, roles and account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, InvalidInput
from ....groups.people_import import ACCEPTED
from ....records.edits import ChangedMeanwhile
from ....records.identity import require_admin
from ....schemas.admin import (
    ConsequencesOut,
    PasswordLinkOut,
    PasswordOut,
    PeopleImportOut,
    PersonIn,
    PersonOut,
    PersonRolesIn,
)
from ....schemas.names import USER_LENGTH
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.uploads import Uploads
from ...dependencies.visitors import Guest, Pairs, html
from ...forms.fields import no_action
from ...html.urls import person_url
from ...security.access import Visitor
from ..account import site_address

PEOPLE = f"{SERVICE_PREFIX}admin/people"

_STATUSES = ("new", "exists", "wrong")

PersonName = Annotated[str, Path(max_length=USER_LENGTH)]
router = APIRouter(include_in_schema=False, prefix="/admin")


# -- all users --------------------------------------------------------------------------------


@router.get("/people")
def people(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return _people(web, visitor)


@router.post("/people")
def add_person(web: Carrel, visitor: Guest, pairs: Pairs) -> Response:
    """Create an account, and show its password once."""
    require_admin(visitor.identity)
    fields, member = dict(pairs), _ticked(pairs, "member")
    body = PersonIn(
        name=fields.get("name", "").strip()[:USER_LENGTH] or "?",
        admin=fields.get("admin") == "yes",
        groups=member,
    )
    try:
        made = web.administration.add_person(visitor.identity, body)
    except CarrelError as error:
        return _people(web, visitor, error=error, filled=fields, member=member)
    return _people(web, visitor, made=made)


def _people(
    web: WebContext,
    visitor: Visitor,
    *,
    made: PasswordOut | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
    member: Sequence[str] = (),
) -> Response:
    """Render the page; only this response contains the new password.

    ``member``: the groups that are ticked for the account to create.
    """
    page = web.render_for(
        visitor,
        "admin/people.html",
        version=version_for(web, filled, error),
        found=web.administration.people(visitor.identity),
        groups=[group.name for group in web.context.store.groups()],
        member=member,
        made=made,
        own_accounts=web.administration.own_accounts is not None,
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)


# -- accounts from a table ---------------------------------------------------------------------


@router.get("/people/import")
def import_form(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return _import(web, visitor)


@router.post("/people/import")
def import_people(request: Request, web: Carrel, visitor: Guest, sent: Uploads) -> Response:
    """Preview a table or, when confirmed, create its accounts and show their links once."""
    require_admin(visitor.identity)
    table = sent.fields.get("table", "")
    try:
        # A newly selected file replaces the one of the preview.
        chosen = sent.text("file")
        save = sent.fields.get("do") == "save" and not chosen
        table = chosen or table
        if not table.strip():
            raise InvalidInput("No file is selected.", accepted=ACCEPTED, field="table")
        found = web.administration.import_people(visitor.identity, table, dry_run=not save)
    except CarrelError as error:
        return _import(web, visitor, error=error)
    return _import(web, visitor, found=found, table=table, site=site_address(request))


def _import(
    web: WebContext,
    visitor: Visitor,
    *,
    found: PeopleImportOut | None = None,
    table: str = "",
    site: str = "",
    error: CarrelError | None = None,
) -> Response:
    """Render the page; only the response to saving contains the links."""
    rows = found.rows if found else []
    page = web.render_for(
        visitor,
        "admin/people_import.html",
        version=version_for(web, None, error),
        own_accounts=web.administration.own_accounts is not None,
        found=found,
        numbers={each: sum(row.status == each for row in rows) for each in _STATUSES},
        table=table,
        site=site,
        accepted=ACCEPTED,
        error=error,
    )
    return html(page, error.http_status if error else 200)


# -- one user ---------------------------------------------------------------------------------


@router.get("/person/{name}")
def person(web: Carrel, visitor: Guest, name: PersonName) -> Response:
    require_admin(visitor.identity)
    return _person(web, visitor, name)


@router.post("/person/{name}")
def change_person(
    request: Request, web: Carrel, visitor: Guest, name: PersonName, pairs: Pairs
) -> Response:
    """Preview or save roles, make a link, reset the password or remove the account."""
    require_admin(visitor.identity)
    who, fields = visitor.identity, dict(pairs)
    try:
        match fields.get("do", ""):
            case "preview" | "save" as do:
                wanted = _roles(pairs)
                effect = web.administration.set_roles(who, name, wanted, dry_run=do == "preview")
                if effect.saved:
                    return RedirectResponse(person_url(name), SEE_OTHER)
                return _person(web, visitor, name, effect=effect, wanted=wanted, filled=fields)
            case "password":
                made = web.administration.reset_password(who, name)
                return _person(web, visitor, name, made=made)
            case "link":
                link = web.administration.make_link(who, name)
                return _person(web, visitor, name, link=link, site=site_address(request))
            case "remove":
                web.administration.remove_person(who, name)
                return RedirectResponse(PEOPLE, SEE_OTHER)
            case _:
                raise no_action()
    except CarrelError as error:
        ticked = fields.get("do") in ("preview", "save") and not isinstance(error, ChangedMeanwhile)
        kept = _roles(pairs) if ticked else None
        return _person(web, visitor, name, error=error, wanted=kept, filled=fields)


def _roles(pairs: list[tuple[str, str]]) -> PersonRolesIn:
    """Return the ticked boxes. The role is omitted for users without an account of Carrel."""
    fields = dict(pairs)
    return PersonRolesIn(
        groups=_ticked(pairs, "member"),
        teaches=_ticked(pairs, "teacher"),
        admin=fields.get("admin") == "yes" if "account" in fields else None,
    )


def _ticked(pairs: Sequence[tuple[str, str]], name: str) -> list[str]:
    return [value[:64] for field, value in pairs if field == name]


def _roles_of(person: PersonOut) -> PersonRolesIn:
    return PersonRolesIn(groups=person.groups, teaches=person.teaches, admin=person.admin)


def _person(
    web: WebContext,
    visitor: Visitor,
    name: str,
    *,
    effect: ConsequencesOut | None = None,
    made: PasswordOut | None = None,
    link: PasswordLinkOut | None = None,
    site: str = "",
    wanted: PersonRolesIn | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    """Render the page; ``wanted`` are the roles that the user has ticked and not saved yet."""
    version = version_for(web, filled, error)
    found = web.administration.person(visitor.identity, name)
    groups = [group.name for group in web.context.store.groups()]
    page = web.render_for(
        visitor,
        "admin/person.html",
        version=version,
        person=found,
        groups=groups,
        courses={each.course.name for each in web.courses.access.memberships(visitor.identity)},
        other_groups=[each for each in found.groups if each not in groups],
        ticked=wanted or _roles_of(found),
        log=web.administration.audit_log.entries(visitor.identity, target=name, limit=10),
        effect=effect,
        made=made,
        link=link,
        site=site,
        account=accounts.find(name) if (accounts := web.administration.own_accounts) else None,
        error=error,
    )
    return html(page, error.http_status if error else 200)
