"""REST for sessions that are held, for more time, and for what a request would have to expect."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from ...schemas import ChangeIn, ExtendIn, QuotesIn, QuotesOut, RequestOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import ERRORS, Carrel, Reader, RequestId, Writer
from ..openapi.description import body_of

router = APIRouter(responses=ERRORS)


@router.post(
    "/quotes",
    tags=["requests"],
    summary="How long would it wait?",
    openapi_extra=body_of(QuotesIn),
)
def quotes(
    web: Carrel, who: Reader, body: Annotated[QuotesIn, Depends(json_body(QuotesIn))]
) -> QuotesOut:
    """One answer for each question, in order, each as if it alone were sent now.

    Nothing is reserved by it. What would be refused is answered with `admitted` false and the
    refusal; `expected_at` is known for those that would be on the first page of the queue.
    """
    return QuotesOut(quotes=web.quotes.quotes(who, body.quotes))


@router.post("/requests/{request_id}/claim", tags=["sessions"], summary="Claim a held device")
def claim(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Starts the session whose device is held, while there is time (`claim_by`).

    Twice is the same as once. While it still waits in the queue the answer is 409. Only its
    owner can do this.
    """
    return web.claims.claim(who, request_id)


@router.post(
    "/requests/{request_id}/keep-place",
    tags=["sessions"],
    summary="Open a CPU session now, and keep the place in the queue",
)
def keep_place(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Of a session that waits for devices: it keeps its place, and its device will be held.

    The default server becomes a CPU session, unless a session runs or waits there already; the
    request moves to a name of its own (`server_name`) if it had that one. Safe to repeat. Only
    its owner can do this.
    """
    return web.claims.keep_place(who, request_id)


@router.post(
    "/requests/{request_id}/extend",
    tags=["requests"],
    summary="Give it more time",
    openapi_extra=body_of(ExtendIn),
)
def extend(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ExtendIn, Depends(json_body(ExtendIn))],
) -> RequestOut:
    """Adds to the time limit of a session or job that runs.

    With `seen_seconds`, the `seconds` of the request as the caller has seen them, it adds to
    those: a limit that reaches so far already stays as it is, so that the call is safe to repeat.

    Refused with 409 where somebody waits whom its devices would serve, where they are kept for
    others by then (a reservation, what is guaranteed), where its budget is promised already, and
    where it would run for longer than its group allows, counted from now. For its owner, teachers
    of its group and administrators.
    """
    return web.extending.extend(who, request_id, body.seconds, seen=body.seen_seconds)


@router.post(
    "/requests/{request_id}/change",
    tags=["requests"],
    summary="Ask for less while it waits",
    openapi_extra=body_of(ChangeIn),
)
def change(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ChangeIn, Depends(json_body(ChangeIn))],
) -> RequestOut:
    """Fewer devices, a shorter time limit or another group, as `/why` suggests them.

    It keeps its id and its age in the queue, and is safe to repeat. Refused with 409 where it does
    not wait any more, or where more is asked for than before. Only its owner can do this.
    """
    return web.changing.change(who, request_id, body)
