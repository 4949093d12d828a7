"""Calls for schedules."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pydantic import JsonValue

from ...schemas import JobIn, RequestOut
from ...schemas.schedules import ScheduledJobOut, ScheduleOut, SchedulesOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class ScheduleCalls(Connection):
    """The caller's schedules: jobs that the service submits at the times of a cron expression."""

    async def create_schedule(self, job: JobIn, *, cron: str, zone: str = "UTC") -> ScheduleOut:
        """Store a schedule; the idempotency key of the job becomes that of the schedule."""
        key = job.idempotency_key or secrets.token_hex(16)
        fields = job.model_dump(mode="json", exclude_unset=True, exclude={"idempotency_key"})
        body = {"cron": cron, "zone": zone, "job": fields, "idempotency_key": key}
        call = Call(method="POST", path="schedules", json=body)
        return await self._send_repeatable(call, ScheduleOut)

    async def schedules(self) -> list[ScheduleOut]:
        return (await self._get("schedules", SchedulesOut)).schedules

    async def schedule(self, schedule_id: str) -> ScheduleOut:
        return await self._get(f"schedules/{segment(schedule_id)}", ScheduleOut)

    async def scheduled_job(self, schedule_id: str) -> ScheduledJobOut:
        """Return the job that a schedule submits."""
        return await self._get(f"schedules/{segment(schedule_id)}/job", ScheduledJobOut)

    async def change_schedule(
        self,
        schedule_id: str,
        *,
        cron: str | None = None,
        zone: str | None = None,
        state: str | None = None,
    ) -> ScheduleOut:
        """Change the times, or pause or resume it: ``state`` is ``paused`` or ``active``."""
        given: Mapping[str, str | None] = {"cron": cron, "zone": zone, "state": state}
        body: dict[str, JsonValue] = {n: value for n, value in given.items() if value is not None}
        return await self._post(f"schedules/{segment(schedule_id)}/change", ScheduleOut, body)

    async def run_schedule(
        self, schedule_id: str, parameters: Mapping[str, JsonValue] | None = None
    ) -> RequestOut:
        """Submit its job now; these parameters replace those of the schedule for this job."""
        body: dict[str, JsonValue] = {"idempotency_key": secrets.token_hex(16)}
        if parameters:
            body["parameters"] = dict(parameters)
        call = Call(method="POST", path=f"schedules/{segment(schedule_id)}/run", json=body)
        return await self._send_repeatable(call, RequestOut)

    async def remove_schedule(self, schedule_id: str) -> None:
        call = Call(method="DELETE", path=f"schedules/{segment(schedule_id)}")
        await self._transport.send(call)
