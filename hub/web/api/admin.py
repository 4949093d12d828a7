"""REST routes for administrators: quotas, people, drains and quarantine, the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from ...schemas import LARGEST
from ...schemas.admin import (
    ChangesOut,
    ConsequencesOut,
    DrainIn,
    GroupIn,
    PasswordLinkOut,
    PasswordOut,
    PeopleImportIn,
    PeopleImportOut,
    PeopleOut,
    PersonIn,
    PersonOut,
    PersonRolesIn,
    QuarantineIn,
    QuotaTreeOut,
)
from ...schemas.names import USER_LENGTH
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.edit_versions import etag
from ..openapi.description import ERRORS, body_of

GroupName = Annotated[str, Path(max_length=64, description="Such as `cs101`.")]
Person = Annotated[str, Path(max_length=USER_LENGTH, description="Such as `ada`.")]
Target = Annotated[
    str, Path(max_length=128, description="Id of a device, or name of a node; as in the pool.")
]
DryRun = Annotated[bool, Query(description="Only preview the effect.")]

router = APIRouter(responses=ERRORS, tags=["administration"], dependencies=[Depends(etag)])


@router.get("/groups/tree", summary="The quota tree with the usage of each group")
def tree(web: Carrel, who: Reader) -> QuotaTreeOut:
    """Includes the current usage and queue of each group and its subgroups."""
    return web.administration.tree(who)


@router.put("/groups/{name}", summary="Create or change a group", openapi_extra=body_of(GroupIn))
def put_group(
    web: Carrel,
    who: Writer,
    name: GroupName,
    body: Annotated[GroupIn, Depends(json_body(GroupIn))],
    dry_run: DryRun = False,
) -> ConsequencesOut:
    """Previews the effect of the change in sentences, and saves it unless `dry_run` is set.

    A lower limit stops no running work: it applies to requests that start later. Only an exhausted
    budget stops running work, with a notice and time to save.
    """
    return web.administration.set_group(who, name, body, dry_run=dry_run)


@router.delete("/groups/{name}", status_code=204, summary="Remove a group")
def remove_group(web: Carrel, who: Writer, name: GroupName) -> None:
    """Refused with 409 while the group has subgroups or requests that are queued or running.

    Its past requests, its ledger entries and the JupyterHub group are kept.
    """
    web.administration.remove_group(who, name)


@router.get("/people", summary="All users with groups, roles and usage")
def people(web: Carrel, who: Reader) -> PeopleOut:
    """Accounts, users of JupyterHub, and owners of requests, by name."""
    return web.administration.people(who)


@router.post(
    "/people", status_code=201, summary="Create an account", openapi_extra=body_of(PersonIn)
)
def add_person(
    web: Carrel, who: Writer, body: Annotated[PersonIn, Depends(json_body(PersonIn))]
) -> PasswordOut:
    """The account gets a random password, which only this response contains."""
    return web.administration.add_person(who, body)


@router.get("/people/{name}", summary="One user with groups, roles and usage")
def person(web: Carrel, who: Reader, name: Person) -> PersonOut:
    """As in the list of all users. Without an answer of JupyterHub, the groups are empty."""
    return web.administration.person(who, name)


@router.put(
    "/people/{name}",
    summary="Change the groups and the role of a user",
    openapi_extra=body_of(PersonRolesIn),
)
def put_person(
    web: Carrel,
    who: Writer,
    name: Person,
    body: Annotated[PersonRolesIn, Depends(json_body(PersonRolesIn))],
    dry_run: DryRun = False,
) -> ConsequencesOut:
    """Previews the effect of the change in sentences, and saves it unless `dry_run` is set.

    Queued and running requests continue in a group that the user leaves.
    """
    return web.administration.set_roles(who, name, body, dry_run=dry_run)


@router.post(
    "/people/import",
    summary="Create accounts from a table (CSV)",
    openapi_extra=body_of(PeopleImportIn),
)
def import_people(
    web: Carrel,
    who: Writer,
    body: Annotated[PeopleImportIn, Depends(json_body(PeopleImportIn))],
    dry_run: DryRun = False,
) -> PeopleImportOut:
    """Creates the accounts of all good rows, with a one-time link for each; wrong rows are left
    out, with the reason. An account that exists only joins the groups that it misses, and gets a
    link if it has no password yet.
    """
    return web.administration.import_people(who, body.table, dry_run=dry_run)


@router.post("/people/{name}/link", summary="Make a one-time link for a new password")
def make_link(web: Carrel, who: Writer, name: Person) -> PasswordLinkOut:
    """Only this response contains the code. It works once, within seven days; an earlier link of
    the user stops working. The present password works until then.
    """
    return web.administration.make_link(who, name)


@router.post("/people/{name}/password", summary="Reset a password")
def reset_password(web: Carrel, who: Writer, name: Person) -> PasswordOut:
    """Sets a random password, which only this response contains. Also ends the delay after failed
    sign-ins.
    """
    return web.administration.reset_password(who, name)


@router.delete("/people/{name}", status_code=204, summary="Remove an account")
def remove_person(web: Carrel, who: Writer, name: Person) -> None:
    """Stops the sessions of the user. The home, requests and ledger entries are kept.

    The account of the last administrator cannot be removed: 409.
    """
    web.administration.remove_person(who, name)


@router.put(
    "/pool/{target}/drain", summary="Drain a device or a node", openapi_extra=body_of(DrainIn)
)
def drain(
    web: Carrel,
    who: Writer,
    target: Target,
    body: Annotated[DrainIn, Depends(json_body(DrainIn))],
    dry_run: DryRun = False,
) -> ConsequencesOut:
    """No new work starts there. Running work ends by itself or, with `until`, is warned now and
    stopped then.
    """
    return web.administration.drain(who, target, body, dry_run=dry_run)


@router.delete("/pool/{target}/drain", summary="End a drain")
def undrain(web: Carrel, who: Writer, target: Target) -> ConsequencesOut:
    """New work can start there again."""
    return web.administration.undrain(who, target)


@router.put(
    "/pool/{target}/quarantine",
    summary="Quarantine a device",
    openapi_extra=body_of(QuarantineIn),
)
def quarantine(
    web: Carrel,
    who: Writer,
    target: Target,
    body: Annotated[QuarantineIn, Depends(json_body(QuarantineIn))],
) -> ConsequencesOut:
    """No new work starts on it until it is released, even if it reports no error; running work
    continues.
    """
    return web.administration.quarantine(who, target, body)


@router.delete("/pool/{target}/quarantine", summary="Release a device from quarantine")
def release(web: Carrel, who: Writer, target: Target) -> ConsequencesOut:
    """Refused with 409 while the device still reports an error."""
    return web.administration.release(who, target)


@router.get("/audit", summary="The audit log")
def audit(
    *,
    web: Carrel,
    who: Reader,
    by: Annotated[
        str, Query(alias="who", max_length=255, description="Only changes by this user.")
    ] = "",
    action: Annotated[str, Query(max_length=32, description="Such as `group set`.")] = "",
    target: Annotated[str, Query(max_length=128, description="Only changes of this target.")] = "",
    before: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="`next` of the previous page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ChangesOut:
    """Newest first. Entries are added and never changed.

    `cli:NAME` is a user at the command line of the machine itself, `carrel` the service.
    """
    return web.administration.audit_log.entries(
        who, by=by, action=action, target=target, before=before, limit=limit
    )
