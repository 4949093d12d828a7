"""REST routes for spawners and attempts: ``…/api/v1``, each with its own token."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from ...records.gangs import split_member_id
from ...schemas import (
    EventsIn,
    JoinIn,
    JoinOut,
    OpenSessionIn,
    Out,
    RequestOut,
    StartedIn,
    StopIn,
)
from ...schemas.grading import GradedOut, GradingOrderOut, KeptOut, VerdictIn
from ...schemas.names import USER_LENGTH
from ...schemas.secrets.bodies import SecretTicketOut, SecretValuesOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, RequestId
from ..dependencies.context import web_of
from ..openapi.description import ERRORS, body_of
from ..security.access import token_of

Lease = Annotated[str, Path(description="Such as `j-7f3k2m9p.1`.", max_length=80)]


class AcceptedOut(Out):
    """Number of events that were new."""

    accepted: int


def _hub(request: Request) -> None:
    web_of(request).caller_access.hub(request)


def _attempt(request: Request, lease_id: Lease) -> None:
    web = web_of(request)
    web.caller_access.attempt(request, lease_id, web.attempts)


def _hub_or_attempt(request: Request, lease_id: Lease) -> None:
    token = token_of(request)
    if token is None or not web_of(request).caller_access.is_hub(token):
        _attempt(request, lease_id)


router = APIRouter(responses=ERRORS)


@router.put(
    "/sessions",
    tags=["hub"],
    summary="Open a session's request",
    dependencies=[Depends(_hub)],
    openapi_extra=body_of(OpenSessionIn),
)
def open_session(
    web: Carrel, body: Annotated[OpenSessionIn, Depends(json_body(OpenSessionIn))]
) -> RequestOut:
    """Returns the live request of this server, or creates one: safe to repeat."""
    return web.sessions.open(body)


@router.get(
    "/people/{person}/graded",
    tags=["hub"],
    summary="The courses of a grader",
    dependencies=[Depends(_hub)],
)
def graded(web: Carrel, person: Annotated[str, Path(max_length=USER_LENGTH)]) -> GradedOut:
    """Courses as teacher or grader: sessions mount their folders, which are created."""
    return GradedOut(courses=list(web.courses.folders.prepare_for(person)))


@router.post(
    "/requests/{request_id}/stop",
    tags=["hub"],
    summary="Report the end of a session",
    dependencies=[Depends(_hub)],
    openapi_extra=body_of(StopIn),
)
def end_session(
    web: Carrel, request_id: RequestId, body: Annotated[StopIn, Depends(json_body(StopIn))]
) -> RequestOut:
    """The first cause is kept; devices are released when the processes have ended."""
    return web.sessions.end(request_id, body)


@router.post(
    "/leases/{lease_id}/launch",
    tags=["hub"],
    summary="Report that a session is starting",
    dependencies=[Depends(_hub)],
)
def launch(web: Carrel, lease_id: Lease) -> RequestOut:
    """`granted` becomes `starting`. 409 for a lease that ended: start nothing."""
    return web.attempts.launch(lease_id)


@router.post(
    "/leases/{lease_id}/started",
    tags=["hub", "attempts"],
    summary="Report the process of a lease",
    dependencies=[Depends(_hub_or_attempt)],
    openapi_extra=body_of(StartedIn),
)
def started(
    web: Carrel, lease_id: Lease, body: Annotated[StartedIn, Depends(json_body(StartedIn))]
) -> RequestOut:
    """The claim: execute nothing before the answer 200; on 409 exit immediately."""
    return web.attempts.started(lease_id, body)


@router.post(
    "/leases/{lease_id}/join",
    tags=["attempts"],
    summary="Join the other members of a job",
    dependencies=[Depends(_attempt)],
    openapi_extra=body_of(JoinIn),
)
def join(
    web: Carrel, lease_id: Lease, body: Annotated[JoinIn, Depends(json_body(JoinIn))]
) -> JoinOut:
    """The claim of a member, whose id takes the place of the lease's: `j-7f3k2m9p.1.m0`.

    Repeat it until `ready` is true, and execute nothing before. On 409 exit immediately.
    """
    return web.attempts.join(lease_id, body)


@router.post(
    "/leases/{lease_id}/events",
    tags=["attempts"],
    summary="Report events",
    dependencies=[Depends(_attempt)],
    openapi_extra=body_of(EventsIn),
)
def add_events(
    web: Carrel, lease_id: Lease, body: Annotated[EventsIn, Depends(json_body(EventsIn))]
) -> AcceptedOut:
    """Events are numbered by `seq` from 1; duplicates are dropped."""
    return AcceptedOut(accepted=web.attempts.add_events(lease_id, body))


@router.get(
    "/leases/{lease_id}/secrets",
    tags=["attempts"],
    summary="The values of an attempt's secrets",
    dependencies=[Depends(_attempt)],
)
def secret_values(web: Carrel, lease_id: Lease) -> SecretValuesOut:
    """For a job, at its start; each use is recorded. With `missing` set, the job must fail."""
    return web.secret_delivery.to_attempt(split_member_id(lease_id)[0])


@router.post(
    "/leases/{lease_id}/secrets/ticket",
    tags=["hub"],
    summary="A ticket for the secrets of a session",
    dependencies=[Depends(_hub)],
)
def secret_ticket(web: Carrel, lease_id: Lease) -> SecretTicketOut:
    """With the ticket the session fetches its values, once."""
    return web.secret_delivery.ticket(lease_id)


@router.post(
    "/leases/{lease_id}/secrets/redeem",
    tags=["attempts"],
    summary="The values of a session's secrets",
)
def redeem_ticket(web: Carrel, lease_id: Lease, request: Request) -> SecretValuesOut:
    """Send the ticket as `Authorization: token …`. It is void afterwards."""
    return web.secret_delivery.to_session(lease_id, token_of(request) or "")


@router.get(
    "/leases/{lease_id}/grading",
    tags=["attempts"],
    summary="The work of a grading run",
    dependencies=[Depends(_attempt)],
)
def grading(web: Carrel, lease_id: Lease) -> GradingOrderOut:
    """The submissions of a grading run without a result."""
    return web.courses.grading.order(lease_id)


@router.post(
    "/leases/{lease_id}/verdicts",
    tags=["attempts"],
    summary="Report the result of a submission",
    dependencies=[Depends(_attempt)],
    openapi_extra=body_of(VerdictIn),
)
def judge(
    web: Carrel, lease_id: Lease, body: Annotated[VerdictIn, Depends(json_body(VerdictIn))]
) -> KeptOut:
    """Stored before the answer; a second result for the same submission is dropped."""
    return KeptOut(kept=web.courses.grading.store_verdict(lease_id, body))
