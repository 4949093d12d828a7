"""REST about terms and reservations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...schemas.calendar import ReservationIn, ReservationOut, ReservationsOut, TermIn, TermsOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..openapi.description import ERRORS, body_of

TermName = Annotated[str, Path(max_length=64, description="Such as `winter`.")]
Name = Annotated[str, Path(max_length=64, description="Id of a reservation.")]

router = APIRouter(responses=ERRORS, tags=["administration"])


@router.get("/terms", summary="The terms by which budgets are counted")
def terms(web: Carrel, who: Reader) -> TermsOut:
    """The first one first; a day of a term begins at midnight UTC."""
    return TermsOut(terms=web.administration.agenda.terms())


@router.put("/terms/{name}", summary="Make or change a term", openapi_extra=body_of(TermIn))
def put_term(
    web: Carrel,
    who: Writer,
    name: TermName,
    body: Annotated[TermIn, Depends(json_body(TermIn))],
) -> TermsOut:
    """Terms follow each other: one that overlaps another is refused."""
    web.administration.put_term(who, name, body)
    return terms(web, who)


@router.delete("/terms/{name}", status_code=204, summary="Remove a term")
def remove_term(web: Carrel, who: Writer, name: TermName) -> None:
    """A budget per term then has none in its days: nothing new starts on it."""
    web.administration.remove_term(who, name)


@router.get("/reservations", summary="Devices that are reserved")
def reservations(web: Carrel, who: Reader) -> ReservationsOut:
    """Those that are not over, the next one first. What one is for is told to its group."""
    return ReservationsOut(reservations=web.pool.reservations(who))


@router.post(
    "/reservations",
    status_code=201,
    summary="Reserve devices for a group",
    openapi_extra=body_of(ReservationIn),
)
def reserve(
    web: Carrel, who: Writer, body: Annotated[ReservationIn, Depends(json_body(ReservationIn))]
) -> ReservationOut:
    """The hours are those of the clock on the wall, also after a change to summer time."""
    return web.administration.reserve(who, body)


@router.delete("/reservations/{name}", status_code=204, summary="Remove a reservation")
def unreserve(web: Carrel, who: Writer, name: Name) -> None:
    """What it kept is lent to everybody again."""
    web.administration.unreserve(who, name)
