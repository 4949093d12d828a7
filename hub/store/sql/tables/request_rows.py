"""Convert between rows and requests, leases and events; the only module that uses their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from sqlalchemy import Connection, Row, Select, and_, bindparam, func, select

from ....records.events import EventRecord
from ....records.gangs import GangMember, JobGang
from ....records.leases import Handle, JobSign, LeaseRecord, LeaseState
from ....records.ledger import LedgerEntry, LedgerKind
from ....records.notices import NoticeKind, StopNotice
from ....records.requests import Cause, CauseCode, JobSpec, RequestRecord
from ....scheduling.model.idleness import IdleWarning
from ....scheduling.model.snapshot import (
    Arrangement,
    GangRole,
    Kind,
    PendingRequest,
    PriorityClass,
)
from ....scheduling.model.states import State
from ....transitions.lifecycle import epoch_of
from .core import attempts, lease_devices, leases, ledger, requests

BATCH = 500
"""The most ids in one query; databases limit the number of parameters."""
# A lookup is several times faster than the constructor of the enumeration.
_KINDS = {str(kind): kind for kind in Kind}
_CLASSES = {str(priority): priority for priority in PriorityClass}
_STATES = {str(state): state for state in State}

# Both sides of the join have columns of the same name: those of the lease get a prefix.
_LEASE = [column.label(f"lease_{column.name}") for column in leases.c]
_ATTEMPT = [
    *(attempts.c.launched_at, attempts.c.pid, attempts.c.process_started_at),
    attempts.c.saved_at,
    attempts.c.members,
    attempts.c.signs,
]

LEASES: Select[*tuple[object, ...]] = select(*_LEASE, *_ATTEMPT).join_from(leases, attempts)
"""Query for leases with their attempts."""

REQUESTS: Select[*tuple[object, ...]] = (
    select(requests, *_LEASE, *_ATTEMPT)
    .outerjoin_from(
        requests,
        leases,
        and_(leases.c.request_id == requests.c.id, leases.c.epoch == requests.c.epoch),
    )
    .outerjoin(attempts, attempts.c.lease_id == leases.c.id)
)
"""Query for requests with their newest lease."""


def read_requests(
    connection: Connection,
    query: Select[*tuple[object, ...]],
    values: Mapping[str, object] | None = None,
) -> tuple[RequestRecord, ...]:
    """Run a query that is based on ``REQUESTS``."""
    rows = connection.execute(query, values).all()
    held = _devices_of(connection, [row.lease_id for row in rows if row.lease_id is not None])
    return tuple(_request(row, held) for row in rows)


def read_leases(
    connection: Connection, query: Select[*tuple[object, ...]]
) -> tuple[LeaseRecord, ...]:
    """Run a query that is based on ``LEASES``."""
    rows = connection.execute(query).all()
    held = _devices_of(connection, [row.lease_id for row in rows])
    return tuple(_lease(row, held) for row in rows)


PENDING = select(
    requests.c.number,
    requests.c.id,
    requests.c.kind,
    requests.c.owner,
    requests.c.group_name,
    requests.c.devices,
    requests.c.seconds,
    requests.c.submitted_at,
    requests.c.model,
    requests.c.priority,
    requests.c.preemptible,
    requests.c.deadline,
    requests.c.expected,
    requests.c.image,
    requests.c.moved_for,
    requests.c.stopped_for,
    requests.c.expedited,
    requests.c.not_before,
    requests.c.gang,
)
"""Query for the columns of a queued request that the scheduler needs; there may be thousands."""


def read_pending(
    connection: Connection, query: Select[*tuple[object, ...]]
) -> dict[int, PendingRequest]:
    """Run a query that is based on ``PENDING``; return the requests by number."""
    return {
        row.number: PendingRequest(
            id=row.id,
            kind=_KINDS[row.kind],
            owner=row.owner,
            group=row.group_name,
            devices=row.devices,
            seconds=row.seconds,
            submitted_at=row.submitted_at,
            model=row.model,
            priority=_CLASSES[row.priority],
            expected=row.expected,
            preemptible=row.preemptible,
            deadline=row.deadline,
            image=row.image or "",
            moved_for=row.moved_for,
            stopped_for=row.stopped_for,
            expedited=row.expedited,
            not_before=row.not_before,
            **_shape(row.gang or _NO_GANG),
        )
        for row in connection.execute(query)
    }


class _Shape(TypedDict):
    gang: tuple[GangRole, ...]
    arrangement: Arrangement


_NO_GANG: Mapping[str, Any] = {"roles": (), "arrangement": str(Arrangement.PACK)}


def _shape(columns: Mapping[str, Any]) -> _Shape:
    return {
        "gang": tuple(GangRole(**role) for role in columns["roles"]),
        "arrangement": Arrangement(columns["arrangement"]),
    }


def _shape_columns(gang: JobGang | None) -> dict[str, object] | None:
    if gang is None:
        return None
    roles = [asdict(role) for role in gang.shape]
    return {"roles": roles, "arrangement": str(gang.arrangement)}


def _devices_of(connection: Connection, lease_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    held: dict[str, tuple[str, ...]] = {}
    for first in range(0, len(lease_ids), BATCH):
        batch = {"leases": lease_ids[first : first + BATCH]}
        for lease_id, device_id in connection.execute(_DEVICES, batch):
            held[lease_id] = (*held.get(lease_id, ()), device_id)
    return held


_DEVICES = (
    select(lease_devices.c.lease_id, lease_devices.c.device_id)
    .where(lease_devices.c.lease_id.in_(bindparam("leases", expanding=True)))
    .order_by(lease_devices.c.lease_id, lease_devices.c.position)
)


def _lease(row: Row[*tuple[object, ...]], held: Mapping[str, tuple[str, ...]]) -> LeaseRecord:
    handle = None
    if row.pid is not None:
        handle = Handle(pid=row.pid, started_at=row.process_started_at)
    return LeaseRecord(
        id=row.lease_id,
        request_id=row.lease_request_id,
        epoch=row.lease_epoch,
        node=row.lease_node,
        devices=held.get(row.lease_id, ()),
        state=LeaseState(row.lease_state),
        granted_at=row.lease_granted_at,
        expires_at=row.lease_expires_at,
        seen_at=row.lease_seen_at,
        charged_until=row.lease_charged_until,
        launched_at=row.launched_at,
        released_at=row.lease_released_at,
        handle=handle,
        saved_at=row.saved_at,
        members=tuple(map(GangMember.from_json, row.members or ())),
        signs=tuple(map(JobSign.from_json, row.signs or ())),
    )


def _request(row: Row[*tuple[object, ...]], held: Mapping[str, tuple[str, ...]]) -> RequestRecord:
    cause = None
    if row.cause_code is not None:
        cause = Cause(
            code=CauseCode(row.cause_code), message=row.cause_message, details=row.cause_details
        )
    return RequestRecord(
        id=row.id,
        kind=_KINDS[row.kind],
        owner=row.owner,
        group=row.group_name,
        devices=row.devices,
        seconds=row.seconds,
        idempotency_key=row.idempotency_key,
        model=row.model,
        priority=_CLASSES[row.priority],
        server_name=row.server_name,
        job=None if row.job is None else JobSpec.from_json(row.job),
        labels=row.labels,
        state=_STATES[row.state],
        submitted_at=row.submitted_at,
        target=None if row.target is None else _STATES[row.target],
        cause=cause,
        started_at=row.started_at,
        ended_at=row.ended_at,
        lease=None if row.lease_id is None else _lease(row, held),
        claim=row.claim,
        claimed_at=row.claimed_at,
        warning=None if row.idle_warning is None else _warning(row.idle_warning),
        kept_at=row.kept_at,
        preemptible=row.preemptible,
        deadline=row.deadline,
        expected=row.expected,
        image=row.image,
        notice=None if row.notice is None else _notice(row.notice),
        changes=row.changes,
        moved_for=row.moved_for,
        stopped_for=row.stopped_for,
        expedited=row.expedited,
        not_before=row.not_before,
    )


def request_columns(request: RequestRecord) -> dict[str, object]:
    """Return all columns of a new request."""
    return {
        "id": request.id,
        "kind": str(request.kind),
        "owner": request.owner,
        "idempotency_key": request.idempotency_key,
        "priority": str(request.priority),
        "job": None if request.job is None else request.job.as_json(),
        "labels": dict(request.labels),
        "submitted_at": request.submitted_at,
        "preemptible": request.preemptible,
        "deadline": request.deadline,
        "image": request.image,
        "gang": _shape_columns(request.gang),
        **request_changes(request),
    }


def _warning(columns: Mapping[str, Any]) -> IdleWarning:
    return IdleWarning(**{**columns, "seen": tuple(columns["seen"])})


def _notice(columns: Mapping[str, Any]) -> StopNotice:
    return StopNotice(**{**columns, "kind": NoticeKind(columns["kind"])})


def request_changes(request: RequestRecord) -> dict[str, object]:
    """Return the columns of a request that transitions change."""
    cause = request.cause
    return {
        "state": str(request.state),
        "model": request.model,
        "epoch": epoch_of(request),
        "target": None if request.target is None else str(request.target),
        "cause_code": None if cause is None else str(cause.code),
        "cause_message": None if cause is None else cause.message,
        "cause_details": None if cause is None else cause.details,
        "started_at": request.started_at,
        "ended_at": request.ended_at,
        "group_name": request.group,
        "devices": request.devices,
        "seconds": request.seconds,
        "expected": request.expected,
        "changes": request.changes,
        "moved_for": request.moved_for,
        "stopped_for": request.stopped_for,
        "expedited": request.expedited,
        "not_before": request.not_before,
        "server_name": request.server_name,
        "claim": request.claim,
        "claimed_at": request.claimed_at,
        "idle_warning": None if request.warning is None else asdict(request.warning),
        "kept_at": request.kept_at,
        "notice": None if request.notice is None else asdict(request.notice),
    }


def lease_columns(lease: LeaseRecord) -> dict[str, object]:
    """Return all columns of a new lease, without its devices and its attempt."""
    return {
        "id": lease.id,
        "request_id": lease.request_id,
        "epoch": lease.epoch,
        "node": lease.node,
        "granted_at": lease.granted_at,
        "expires_at": lease.expires_at,
        **lease_changes(lease),
    }


def lease_changes(lease: LeaseRecord) -> dict[str, object]:
    """Return the columns of a lease that transitions change."""
    return {
        "state": str(lease.state),
        "granted_at": lease.granted_at,
        "seen_at": lease.seen_at,
        "charged_until": lease.charged_until,
        "released_at": lease.released_at,
    }


def attempt_changes(lease: LeaseRecord) -> dict[str, object]:
    """Return the columns of an attempt that transitions change."""
    return {
        "launched_at": lease.launched_at,
        "pid": None if lease.handle is None else lease.handle.pid,
        "process_started_at": None if lease.handle is None else lease.handle.started_at,
        "saved_at": lease.saved_at,
        "members": [member.as_json() for member in lease.members] or None,
        "signs": [sign.as_json() for sign in lease.signs] or None,
    }


def to_events(rows: Iterable[Row[*tuple[object, ...]]]) -> tuple[EventRecord, ...]:
    """Convert rows of ``select(events)``."""
    return tuple(
        EventRecord(
            id=row.id,
            request_id=row.request_id,
            epoch=row.epoch,
            at=row.at,
            kind=row.kind,
            data=row.data,
        )
        for row in rows
    )


def read_charged(connection: Connection, request_ids: Sequence[str]) -> Mapping[str, float]:
    """Return the device-seconds in the ledger by request; 0 for a request without a line."""
    rows = connection.execute(_CHARGED, {"requests": list(request_ids)}).all()
    charged: dict[str, float] = dict(rows)
    return {request_id: charged.get(request_id, 0.0) for request_id in request_ids}


_CHARGED = (
    select(ledger.c.request_id, func.sum(ledger.c.device_seconds))
    .where(ledger.c.request_id.in_(bindparam("requests", expanding=True)))
    .group_by(ledger.c.request_id)
)


def read_ledger(
    connection: Connection, owner: str | None, request_id: str | None
) -> tuple[LedgerEntry, ...]:
    """Return the ledger lines of an owner or a request, oldest first."""
    query = select(ledger).order_by(ledger.c.id)
    if owner is not None:
        query = query.where(ledger.c.owner == owner)
    if request_id is not None:
        query = query.where(ledger.c.request_id == request_id)
    return tuple(to_ledger(connection.execute(query)))


def to_ledger(rows: Iterable[Row[*tuple[object, ...]]]) -> Iterator[LedgerEntry]:
    for row in rows:
        yield LedgerEntry(
            id=row.id,
            lease_id=row.lease_id,
            request_id=row.request_id,
            epoch=row.epoch,
            owner=row.owner,
            group=row.group_name,
            devices=row.devices,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            device_seconds=row.device_seconds,
            kind=LedgerKind(row.kind),
        )
