"""REST routes for terms and reservations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...schemas.calendar import ReservationIn, ReservationOut, ReservationsOut, TermIn, TermsOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.edit_versions import etag
from ..openapi.description import ERRORS, body_of

TermName = Annotated[str, Path(max_length=64, description="Such as `winter`.")]
Name = Annotated[str, Path(max_length=64, description="Id of a reservation.")]

router = APIRouter(responses=ERRORS, tags=["administration"], dependencies=[Depends(etag)])


@router.get("/terms", summary="The terms of the budget periods")
def terms(web: Carrel, who: Reader) -> TermsOut:
    """In chronological order; days of a term begin at midnight UTC."""
    return TermsOut(terms=web.administration.calendar.terms())


@router.put("/terms/{name}", summary="Create or change a term", openapi_extra=body_of(TermIn))
def put_term(
    web: Carrel,
    who: Writer,
    name: TermName,
    body: Annotated[TermIn, Depends(json_body(TermIn))],
) -> TermsOut:
    """Terms cannot overlap."""
    web.administration.put_term(who, name, body)
    return terms(web, who)


@router.delete("/terms/{name}", status_code=204, summary="Remove a term")
def remove_term(web: Carrel, who: Writer, name: TermName) -> None:
    """Budgets per term are then empty on its days: nothing new starts on them."""
    web.administration.remove_term(who, name)


@router.get("/reservations", summary="The reservations")
def reservations(web: Carrel, who: Reader) -> ReservationsOut:
    """Current and future ones, in chronological order. The purpose is shown to the group only."""
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
    """The hours are local time, also after a change to daylight saving time."""
    return web.administration.reserve(who, body)


@router.put(
    "/reservations/{name}", summary="Change a reservation", openapi_extra=body_of(ReservationIn)
)
def change_reservation(
    web: Carrel,
    who: Writer,
    name: Name,
    body: Annotated[ReservationIn, Depends(json_body(ReservationIn))],
) -> ReservationOut:
    """Its id stays; without ``first`` it keeps its first day."""
    return web.administration.change_reservation(who, name, body)


@router.delete("/reservations/{name}", status_code=204, summary="Remove a reservation")
def unreserve(web: Carrel, who: Writer, name: Name) -> None:
    """The reserved devices become available to all groups again."""
    web.administration.unreserve(who, name)
