"""REST routes for programs: create, list, revoke; their standing; approval of their jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from ....errors import NotFound
from ....schemas.programs.bodies import (
    ApprovalOut,
    ApprovalsOut,
    NewProgramOut,
    ProgramIn,
    ProgramOut,
    ProgramsOut,
)
from ...dependencies.bodies import json_body
from ...dependencies.callers import Carrel, JobReader, Reader, RequestId, Writer
from ...openapi.description import ERRORS, body_of

Name = Annotated[
    str, Path(max_length=64, description="Id of a program, or the name of one of yours.")
]

router = APIRouter(responses=ERRORS, tags=["programs"])


@router.get("/programs", summary="Your programs")
def programs(
    web: Carrel,
    who: Reader,
    all_: Annotated[
        bool, Query(alias="all", description="Those of all users, for administrators.")
    ] = False,
) -> ProgramsOut:
    """The newest first, also expired and revoked ones, with what each has used."""
    return ProgramsOut(programs=web.programs.all(who) if all_ else web.programs.of(who))


@router.post(
    "/programs",
    status_code=201,
    summary="Create a program",
    openapi_extra=body_of(ProgramIn),
)
def create_program(
    web: Carrel, who: Writer, body: Annotated[ProgramIn, Depends(json_body(ProgramIn))]
) -> NewProgramOut:
    """The token is in this answer only. One of your groups must allow programs."""
    return web.programs.add(who, body)


@router.delete("/programs/{name}", summary="Revoke a program")
def revoke_program(web: Carrel, who: Writer, name: Name) -> ProgramOut:
    """Its token is refused at once. Its queued jobs are cancelled, its running jobs go on.

    For its owner and administrators; safe to repeat.
    """
    return web.programs.revoke(who, name)


@router.get("/program", summary="The calling program")
def own_program(web: Carrel, who: JobReader) -> ProgramOut:
    """Its budget and what is left of it. For the token of a program only."""
    if who.program is None:
        raise NotFound(
            "You are not a program.", accepted="GET /programs lists the programs of a user."
        )
    return web.programs.standing(who.program)


@router.get("/approvals", summary="Jobs that wait for your approval")
def approvals(web: Carrel, who: Reader) -> ApprovalsOut:
    """Jobs of your programs that are larger than these may submit alone."""
    return ApprovalsOut(
        approvals=[
            ApprovalOut(request=web.requests.request(who, name), cancelled_at=at)
            for name, at in web.programs.unapproved(who).items()
        ]
    )


@router.post("/requests/{request_id}/approve", status_code=204, summary="Approve a job")
def approve(web: Carrel, who: Writer, request_id: RequestId) -> None:
    """Releases a job of a program of yours that waits for it. Safe to repeat.

    To refuse it, cancel it.
    """
    web.programs.approve(who, request_id)
