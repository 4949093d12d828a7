"""REST for administrators: quotas, people, drains and quarantine, the audit list."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from ...schemas import LARGEST
from ...schemas.admin import (
    ChangesOut,
    ConsequencesOut,
    DrainIn,
    GroupIn,
    PasswordOut,
    PeopleOut,
    PersonIn,
    QuarantineIn,
    QuotaTreeOut,
)
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..openapi.description import ERRORS, body_of

GroupName = Annotated[str, Path(max_length=64, description="Such as `cs101`.")]
Person = Annotated[str, Path(max_length=64, description="Such as `ada`.")]
Target = Annotated[
    str, Path(max_length=128, description="Id of a device, or name of a node; as in the pool.")
]
DryRun = Annotated[bool, Query(description="Only say what it would mean.")]

router = APIRouter(responses=ERRORS, tags=["administration"])


@router.get("/groups/tree", summary="The quota tree, with use beside each group")
def tree(web: Carrel, who: Reader) -> QuotaTreeOut:
    """What a group's members and those of the groups below it hold, wait for and have used."""
    return web.administration.tree(who)


@router.put("/groups/{name}", summary="Make or change a group", openapi_extra=body_of(GroupIn))
def put_group(
    web: Carrel,
    who: Writer,
    name: GroupName,
    body: Annotated[GroupIn, Depends(json_body(GroupIn))],
    dry_run: DryRun = False,
) -> ConsequencesOut:
    """Says in sentences what it means now, and saves it unless `dry_run` is set.

    A limit that is lowered stops nothing: it holds for what starts from then on. Only a budget that
    is used up by then does, with a notice and time to save.
    """
    return web.administration.set_group(who, name, body, dry_run=dry_run)


@router.delete("/groups/{name}", status_code=204, summary="Remove a group")
def remove_group(web: Carrel, who: Writer, name: GroupName) -> None:
    """Refused with 409 while requests of it wait or run, or groups stand below it.

    Its past requests and its ledger are kept, and so is the JupyterHub group.
    """
    web.administration.remove_group(who, name)


@router.get("/people", summary="Everybody, with groups, roles and use")
def people(web: Carrel, who: Reader) -> PeopleOut:
    """Accounts, users of JupyterHub, and owners of requests, by name."""
    return web.administration.people(who)


@router.post("/people", status_code=201, summary="Make an account", openapi_extra=body_of(PersonIn))
def add_person(
    web: Carrel, who: Writer, body: Annotated[PersonIn, Depends(json_body(PersonIn))]
) -> PasswordOut:
    """With a random password, which is in this answer and nowhere else."""
    return web.administration.add_person(who, body)


@router.post("/people/{name}/password", summary="Give somebody a new password")
def reset_password(web: Carrel, who: Writer, name: Person) -> PasswordOut:
    """A random one, which is in this answer and nowhere else. It ends the wait after failed
    sign-ins too.
    """
    return web.administration.reset_password(who, name)


@router.delete("/people/{name}", status_code=204, summary="Remove an account")
def remove_person(web: Carrel, who: Writer, name: Person) -> None:
    """Stops the person's sessions. The home, the requests and the ledger are kept.

    The last administrator's account is not removed: 409.
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
    """Nothing new starts there. What runs ends by itself or, with `until`, is warned now and
    stopped then.
    """
    return web.administration.drain(who, target, body, dry_run=dry_run)


@router.delete("/pool/{target}/drain", summary="End a drain")
def undrain(web: Carrel, who: Writer, target: Target) -> ConsequencesOut:
    """New work may start there again."""
    return web.administration.undrain(who, target)


@router.put(
    "/pool/{target}/quarantine",
    summary="Put a device into quarantine",
    openapi_extra=body_of(QuarantineIn),
)
def quarantine(
    web: Carrel,
    who: Writer,
    target: Target,
    body: Annotated[QuarantineIn, Depends(json_body(QuarantineIn))],
) -> ConsequencesOut:
    """Nothing new starts on it until it is released, whatever it says of itself; what runs on
    it goes on.
    """
    return web.administration.quarantine(who, target, body)


@router.delete("/pool/{target}/quarantine", summary="Release a device from quarantine")
def release(web: Carrel, who: Writer, target: Target) -> ConsequencesOut:
    """Refused with 409 while the device still reports that it is broken."""
    return web.administration.release(who, target)


@router.get("/audit", summary="Who changed what")
def audit(
    *,
    web: Carrel,
    who: Reader,
    by: Annotated[str, Query(alias="who", max_length=255, description="Only by them.")] = "",
    action: Annotated[str, Query(max_length=32, description="Such as `group set`.")] = "",
    target: Annotated[str, Query(max_length=128, description="Only about this.")] = "",
    before: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="`next` of the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ChangesOut:
    """Newest first. Lines are added and never changed.

    `cli:NAME` is somebody at the command line of the machine itself, `carrel` the service.
    """
    return web.administration.audit_log.entries(
        who, by=by, action=action, target=target, before=before, limit=limit
    )
