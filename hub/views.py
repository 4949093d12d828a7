"""What a person may see of a record, as wire values.

Privacy (design: section 9): students see that a device is taken, not by whom; teachers see
their course; administrators see all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .ports.records import EventRecord, Json, LeaseRecord, LedgerEntry, RequestRecord, Usage
from .ports.world import Identity
from .scheduling.lifecycle import TERMINAL
from .scheduling.model import Device, Health, Holding, Wait
from .wire import (
    CauseOut,
    DeviceOut,
    EventOut,
    LeaseOut,
    LedgerOut,
    ProgressOut,
    RequestOut,
    UsageOut,
    WaitOut,
)
from .wording import wait_sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Somebody who looks, with the groups in which they are a teacher.

    ``identity`` is None for the hub itself, which sees everything.
    """

    identity: Identity | None
    teaches: frozenset[str] = frozenset()

    @property
    def name(self) -> str | None:
        return self.identity.name if self.identity else None

    @property
    def sees_all(self) -> bool:
        return self.identity is None or self.identity.admin

    def may_see(self, owner: str, group: str) -> bool:
        return self.sees_all or owner == self.name or group in self.teaches


def device_out(device: Device, holding: Holding | None, viewer: Viewer) -> DeviceOut:
    """A tile of the pool."""
    if holding is not None:
        state = "yours" if holding.owner == viewer.name else "taken"
    elif device.health is Health.OK:
        state = "free"
    else:
        state = device.health.value
    named = holding is not None and viewer.may_see(holding.owner, holding.group)
    return DeviceOut.model_validate(
        {
            "id": device.id,
            "node": device.node,
            "index": device.index,
            "model": device.model,
            "memory_bytes": device.memory_bytes,
            "simulated": device.simulated,
            "state": state,
            "why": device.why if device.health is not Health.OK else "",
            "request_id": holding.request_id if holding and named else None,
            "owner": holding.owner if holding and named else None,
        }
    )


def request_out(
    record: RequestRecord,
    *,
    viewer: Viewer,
    devices: Mapping[str, Device],
    wait: Wait | None,
    progress: ProgressOut | None,
    device_seconds: float,
) -> RequestOut:
    lease = record.lease
    job = record.job
    return RequestOut(
        id=record.id,
        kind=record.kind.value,
        owner=record.owner,
        group=record.group,
        devices=record.devices,
        seconds=record.seconds,
        state=record.state.value,
        submitted_at=record.submitted_at,
        started_at=record.started_at,
        ended_at=record.ended_at,
        ends_by=lease.granted_at + record.seconds if lease and lease.released_at is None else None,
        server_name=record.server_name,
        notebook=job.notebook_name if job else "",
        output=job.output_name if job else "",
        parameters=_plain(job.parameters) if job else {},
        labels=dict(record.labels),
        wait=wait_out(wait) if wait else None,
        cause=CauseOut(
            code=record.cause.code.value,
            message=record.cause.message,
            details=record.cause.details,
        )
        if record.cause
        else None,
        lease=lease_out(record, lease, devices, viewer) if lease else None,
        progress=progress,
        device_seconds=round(device_seconds, 3),
        ended=record.state in TERMINAL,
    )


def wait_out(wait: Wait) -> WaitOut:
    return WaitOut(
        place=wait.place,
        ahead=wait.ahead,
        reason=wait.reason.value,
        sentence=wait_sentence(wait),
        expected_at=wait.estimate.at if wait.estimate else None,
        latest_at=wait.estimate.latest if wait.estimate else None,
    )


def lease_out(
    record: RequestRecord, lease: LeaseRecord, devices: Mapping[str, Device], viewer: Viewer
) -> LeaseOut:
    held = Holding(
        request_id=record.id,
        owner=record.owner,
        group=record.group,
        devices=lease.devices,
        since=lease.granted_at,
        until=lease.granted_at + record.seconds,
    )
    return LeaseOut(
        id=lease.id,
        epoch=lease.epoch,
        state=lease.state.value,
        devices=[device_out(devices[d], held, viewer) for d in lease.devices if d in devices],
        granted_at=lease.granted_at,
        released_at=lease.released_at,
        pid=lease.handle.pid if lease.handle else None,
        started_at=lease.handle.started_at if lease.handle else None,
    )


def event_out(event: EventRecord) -> EventOut:
    return EventOut(
        id=event.id,
        request_id=event.request_id,
        epoch=event.epoch,
        at=event.at,
        kind=event.kind,
        data=_plain(event.data),
    )


def ledger_out(entry: LedgerEntry) -> LedgerOut:
    return LedgerOut(
        id=entry.id,
        lease_id=entry.lease_id,
        request_id=entry.request_id,
        epoch=entry.epoch,
        owner=entry.owner,
        group=entry.group,
        devices=entry.devices,
        starts_at=entry.starts_at,
        ends_at=entry.ends_at,
        device_seconds=entry.device_seconds,
    )


def usage_out(usage: Usage) -> UsageOut:
    return UsageOut(owner=usage.owner, group=usage.group, charged=usage.charged, open=usage.open)


def progress_after(before: ProgressOut | None, event: EventRecord) -> ProgressOut | None:
    """Progress over cells, folded event by event; a new attempt starts over."""
    number = event.data.get("number")
    match event.kind:
        case "cells":
            cells = event.data.get("cells")
            return ProgressOut(cells=cells if isinstance(cells, int) else 0, done=0)
        case "cell_started" if before and isinstance(number, int):
            return before.model_copy(update={"current": number})
        case "cell_finished" if before and isinstance(number, int):
            return before.model_copy(update={"done": number, "current": None})
        case "state" if event.data.get("state") == "queued":
            return None
        case _:
            return before


def _plain(values: Mapping[str, Json]) -> dict[str, object]:
    """Mutable containers, which is what pydantic's JSON type takes."""
    return {key: _plain_value(value) for key, value in values.items()}


def _plain_value(value: Json) -> object:
    if isinstance(value, str) or value is None or isinstance(value, int | float | bool):
        return value
    if isinstance(value, Mapping):
        return _plain(value)
    return [_plain_value(item) for item in value]
