"""REST routes for schedules."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...schemas import RequestOut
from ...schemas.schedules import (
    ScheduleChangeIn,
    ScheduledJobOut,
    ScheduleIn,
    ScheduleOut,
    ScheduleRunIn,
    SchedulesOut,
)
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..openapi.description import ERRORS, body_of

ScheduleId = Annotated[str, Path(description="Such as `c-7f3k2m9p`.", max_length=64)]

router = APIRouter(responses=ERRORS, tags=["schedules"])


@router.post(
    "/schedules",
    status_code=201,
    summary="Create a schedule",
    openapi_extra=body_of(ScheduleIn),
)
def create(
    web: Carrel, who: Writer, body: Annotated[ScheduleIn, Depends(json_body(ScheduleIn))]
) -> ScheduleOut:
    """The service submits the job at every time of `cron`, as you would, with the label
    `schedule`.

    The job is checked as a submission is, and stored with its files, at most 8 MiB together. Of
    times that pass while the service is not running, the newest is made up for. After five refused
    jobs in a row it is paused. The same `idempotency_key` returns the first schedule.
    """
    return web.schedules.create(who, body)


@router.get("/schedules", summary="List your schedules")
def list_schedules(web: Carrel, who: Reader) -> SchedulesOut:
    """Oldest first."""
    return web.schedules.all(who)


@router.get("/schedules/{schedule_id}", summary="One schedule")
def show(web: Carrel, who: Reader, schedule_id: ScheduleId) -> ScheduleOut:
    """Its times, and the result of the last one."""
    return web.schedules.one(who, schedule_id)


@router.get("/schedules/{schedule_id}/job", summary="The job of a schedule")
def show_job(web: Carrel, who: Reader, schedule_id: ScheduleId) -> ScheduledJobOut:
    """What it submits; the content of its notebook and files is not included."""
    return web.schedules.job(who, schedule_id)


@router.post(
    "/schedules/{schedule_id}/change",
    summary="Change, pause or resume a schedule",
    openapi_extra=body_of(ScheduleChangeIn),
)
def change(
    web: Carrel,
    who: Writer,
    schedule_id: ScheduleId,
    body: Annotated[ScheduleChangeIn, Depends(json_body(ScheduleChangeIn))],
) -> ScheduleOut:
    """Times that pass while it is paused get no job."""
    return web.schedules.change(who, schedule_id, body)


@router.post(
    "/schedules/{schedule_id}/run",
    status_code=201,
    summary="Submit the job of a schedule now",
    openapi_extra=body_of(ScheduleRunIn),
)
def run(
    web: Carrel,
    who: Writer,
    schedule_id: ScheduleId,
    body: Annotated[ScheduleRunIn, Depends(json_body(ScheduleRunIn))],
) -> RequestOut:
    """Its times do not change. `parameters` replace those of the schedule for this job."""
    return web.schedules.run(who, schedule_id, body)


@router.delete("/schedules/{schedule_id}", status_code=204, summary="Remove a schedule")
def remove(web: Carrel, who: Writer, schedule_id: ScheduleId) -> None:
    """The jobs that it has submitted stay."""
    web.schedules.remove(who, schedule_id)
