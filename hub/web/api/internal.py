"""The REST API for the hub's spawners and for attempts: ``…/api/v1``, each with its own token."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from ...schemas import EventsIn, OpenSessionIn, Out, RequestOut, StartedIn, StopIn
from ...schemas.grading import GradedOut, GradingOrderOut, KeptOut, VerdictIn
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, RequestId
from ..dependencies.context import web_of
from ..openapi.description import ERRORS, body_of
from ..security.access import token_of

Lease = Annotated[str, Path(description="Such as `j-7f3k2m9p.1`.", max_length=80)]


class AcceptedOut(Out):
    """How many events were new."""

    accepted: int


def _hub(request: Request) -> None:
    web_of(request).gate.hub(request)


def _attempt(request: Request, lease_id: Lease) -> None:
    web = web_of(request)
    web.gate.attempt(request, lease_id, web.attempts)


def _hub_or_attempt(request: Request, lease_id: Lease) -> None:
    token = token_of(request)
    if token is None or not web_of(request).gate.is_hub(token):
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
    """The live request of this server, or a new one: safe to repeat."""
    return web.sessions.open(body)


@router.get(
    "/people/{person}/graded",
    tags=["hub"],
    summary="Which courses somebody grades",
    dependencies=[Depends(_hub)],
)
def graded(web: Carrel, person: Annotated[str, Path(max_length=64)]) -> GradedOut:
    """As a teacher or a grader: their sessions see the folders of these, which are made."""
    return GradedOut(courses=list(web.courses.folders.prepare_for(person)))


@router.post(
    "/requests/{request_id}/stop",
    tags=["hub"],
    summary="Say how a session came to its end",
    dependencies=[Depends(_hub)],
    openapi_extra=body_of(StopIn),
)
def end_session(
    web: Carrel, request_id: RequestId, body: Annotated[StopIn, Depends(json_body(StopIn))]
) -> RequestOut:
    """The first cause stands; devices come free once death is confirmed."""
    return web.sessions.end(request_id, body)


@router.post(
    "/leases/{lease_id}/launch",
    tags=["hub"],
    summary="Say that a session is about to be started",
    dependencies=[Depends(_hub)],
)
def launch(web: Carrel, lease_id: Lease) -> RequestOut:
    """`granted` becomes `starting`. A lease that was given back answers 409: start nothing."""
    return web.attempts.launch(lease_id)


@router.post(
    "/leases/{lease_id}/started",
    tags=["hub", "attempts"],
    summary="Say which process runs under the lease",
    dependencies=[Depends(_hub_or_attempt)],
    openapi_extra=body_of(StartedIn),
)
def started(
    web: Carrel, lease_id: Lease, body: Annotated[StartedIn, Depends(json_body(StartedIn))]
) -> RequestOut:
    """The claim: nothing is executed before this answers 200; on 409 the process ends at once."""
    return web.attempts.started(lease_id, body)


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
    """Events are counted by `seq` from 1; what was seen before is dropped."""
    return AcceptedOut(accepted=web.attempts.add_events(lease_id, body))


@router.get(
    "/leases/{lease_id}/grading",
    tags=["attempts"],
    summary="What is to be graded",
    dependencies=[Depends(_attempt)],
)
def grading(web: Carrel, lease_id: Lease) -> GradingOrderOut:
    """The submissions of a grading run that have no verdict yet."""
    return web.courses.grading.order(lease_id)


@router.post(
    "/leases/{lease_id}/verdicts",
    tags=["attempts"],
    summary="Give a verdict on a submission",
    dependencies=[Depends(_attempt)],
    openapi_extra=body_of(VerdictIn),
)
def judge(
    web: Carrel, lease_id: Lease, body: Annotated[VerdictIn, Depends(json_body(VerdictIn))]
) -> KeptOut:
    """Kept for good before this answers; a second one for the same submission is dropped."""
    return KeptOut(kept=web.courses.grading.store_verdict(lease_id, body))
