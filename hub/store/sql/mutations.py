"""Changes of requests and leases; functions run inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from ...errors import Conflict
from ...records.events import EventRecord, NewEvent
from ...records.gangs import members_of
from ...records.identity import ProgramCharge
from ...records.leases import LeaseRecord, LeaseState
from ...records.ledger import LedgerKind
from ...records.requests import NewRequest, RequestRecord
from ...scheduling.model.plan import Start
from ...scheduling.model.snapshot import Kind
from ...transitions import lifecycle, owner_changes
from ...transitions.transition import LeaseInterval, Transition, event_data
from ..rules.conversions import NodeSelector, QuotaCheck
from . import pool, programs, queries, secrets
from .marks_and_audit import record_change
from .merkle_log.queue import queue_line
from .tables.core import attempts, events, labels, lease_devices, leases, ledger, nodes, requests
from .tables.pool_rows import read_devices, read_groups, read_marks
from .tables.request_rows import (
    LEASES,
    REQUESTS,
    attempt_changes,
    lease_changes,
    lease_columns,
    read_leases,
    read_requests,
    request_changes,
    request_columns,
    to_events,
)


def submit(
    connection: Connection,
    new: NewRequest,
    now: float,
    charge: ProgramCharge | None = None,
    session_secrets: Sequence[str] = (),
) -> RequestRecord:
    first = _find_repeated(connection, new)
    if first is not None:
        return first
    pool.group(connection, new.group)
    step = lifecycle.queued(new, now)
    try:
        with connection.begin_nested():
            added = connection.execute(insert(requests).values(request_columns(step.request)))
            _add_labels(connection, added.inserted_primary_key, new)
    except IntegrityError:
        # In a database with several writers, another one stored the same request meanwhile.
        first = _find_repeated(connection, new)
        if first is None:
            raise Conflict(f"The request {new.id} exists already.") from None
        return first
    if charge is not None:
        programs.charge(connection, new.id, charge, now)
    if session_secrets:
        secrets.put_uses(connection, new.id, session_secrets)
    _add_transition_events(connection, step)
    return queries.request(connection, new.id)


def _add_labels(connection: Connection, key: Sequence[object] | None, new: NewRequest) -> None:
    """Copy the labels into the table that has an index on them."""
    number = key[0] if key else None
    rows = [{"number": number, "name": name, "value": v} for name, v in new.labels.items()]
    if rows:
        connection.execute(insert(labels), rows)


def _find_repeated(connection: Connection, new: NewRequest) -> RequestRecord | None:
    """Return the stored request that ``new`` repeats."""
    first = queries.request_by_key(connection, new.owner, new.idempotency_key)
    if first is None and new.kind is Kind.SESSION:
        first = queries.live_session(connection, new.owner, new.server_name)
    return first


def grant(
    connection: Connection, starts: Sequence[Start], *, now: float, until: float
) -> tuple[LeaseRecord, ...]:
    marks = read_marks(connection)
    devices = read_devices(connection, marks)
    quota = QuotaCheck(read_groups(connection).values(), queries.allocations(connection))
    known = connection.scalars(select(nodes.c.name)).all()
    selector = NodeSelector(known, marks, queries.leases_by_node(connection))
    granted = []
    for start in starts:
        request = _find(connection, start.request_id)
        device_ids = tuple(start.devices)
        taken = pool.taken(connection)
        if request is None or not lifecycle.grantable(request, start, devices, taken):
            continue
        node = devices[device_ids[0]].node if device_ids else selector.choose(start)
        held = replace(request, devices=len(device_ids))
        if node is None or not quota.allows(held):
            continue
        on = {name: devices[name].node for name in device_ids}
        members = (
            members_of(request.gang, start.members, device_ids, on, node) if request.gang else ()
        )
        step = lifecycle.grant(
            request, device_ids, node=node, now=now, until=until, members=members
        )
        if step.request.lease is not None and _store_grant(connection, request, step):
            granted.append(step.request.lease)
            quota.add(held)
            selector.add_lease(node)
    return tuple(granted)


def _find(connection: Connection, request_id: str) -> RequestRecord | None:
    query = REQUESTS.where(requests.c.id == request_id).with_for_update(of=requests)
    return next(iter(read_requests(connection, query)), None)


def _store_grant(connection: Connection, before: RequestRecord, step: Transition) -> bool:
    """Store a grant; return False if another lease took one of its devices meanwhile."""
    try:
        with connection.begin_nested():
            store_transition(connection, before, step)
    except IntegrityError:
        return False
    return True


def launch(connection: Connection, lease_id: str, *, now: float, token_hash: str) -> RequestRecord:
    request = queries.request_of_lease(connection, lease_id)
    step = lifecycle.launch(request, lease_id, now=now)
    token = token_hash or None
    same = select(attempts.c.lease_id).where(attempts.c.token_hash == token)
    if token and connection.scalar(same) not in (None, lease_id):
        raise Conflict("Another attempt already has this token.")
    connection.execute(
        update(attempts).where(attempts.c.lease_id == lease_id).values(token_hash=token)
    )
    return store_transition(connection, request, step)


def keep_place(
    connection: Connection,
    request_id: str,
    server_name: str,
    *,
    now: float,
    desk: NewRequest | None,
) -> RequestRecord:
    before = queries.request(connection, request_id)
    step = owner_changes.keep_place(before, server_name, now=now)
    name = step.request.server_name
    live = queries.live_session(connection, before.owner, name)
    owner_changes.check_name_is_free(before, name, live)
    after = store_transition(connection, before, step)
    if desk is not None:
        submit(connection, desk, now)
    return after


def store_transition(
    connection: Connection, before: RequestRecord, step: Transition
) -> RequestRecord:
    """Store a transition: the request, its lease, the charge, the events and the audit entry."""
    request = step.request
    if request is before:
        return before
    changes = request_changes(request)
    if request.job is not None and request.job is not before.job:
        changes["job"] = request.job.as_json()
    connection.execute(update(requests).where(requests.c.id == request.id).values(changes))
    if request.lease is not None and request.lease != before.lease:
        if lifecycle.epoch_of(before) == request.lease.epoch:
            _update_lease(connection, request.lease)
        else:
            _add_lease(connection, request.lease)
    if request.lease is not None and step.charge is not None:
        _charge(connection, request, request.lease, step.charge)
    if request.lease is not None and step.credit:
        _credit(connection, request.lease)
    _add_transition_events(connection, step)
    record_change(connection, step.audit)
    return request


def _add_lease(connection: Connection, lease: LeaseRecord) -> None:
    connection.execute(insert(leases).values(lease_columns(lease)))
    connection.execute(insert(attempts).values(lease_id=lease.id, **attempt_changes(lease)))
    rows = [
        {"lease_id": lease.id, "device_id": device, "position": position}
        for position, device in enumerate(lease.devices)
    ]
    if rows:
        connection.execute(insert(lease_devices), rows)


def _update_lease(connection: Connection, lease: LeaseRecord) -> None:
    connection.execute(update(leases).where(leases.c.id == lease.id).values(lease_changes(lease)))
    connection.execute(
        update(attempts).where(attempts.c.lease_id == lease.id).values(attempt_changes(lease))
    )
    if lease.state is LeaseState.RELEASED:
        connection.execute(
            update(lease_devices)
            .where(lease_devices.c.lease_id == lease.id)
            .values(released_at=lease.released_at)
        )


def _charge(
    connection: Connection, request: RequestRecord, lease: LeaseRecord, interval: LeaseInterval
) -> None:
    """Add a ledger line for an interval of a lease."""
    _add_line(
        connection,
        {
            "lease_id": lease.id,
            "request_id": request.id,
            "epoch": lease.epoch,
            "owner": request.owner,
            "group_name": request.group,
            "devices": interval.devices,
            "starts_at": interval.starts_at,
            "ends_at": interval.ends_at,
            "device_seconds": interval.device_seconds,
        },
    )


def _credit(connection: Connection, lease: LeaseRecord) -> None:
    """Add a ledger line that cancels all charges of a lease."""
    query = select(ledger).where(ledger.c.lease_id == lease.id).order_by(ledger.c.id)
    rows = connection.execute(query).all()
    if not rows:
        return
    line = rows[0]._asdict() | {
        "ends_at": rows[-1].ends_at,
        "device_seconds": -fsum(row.device_seconds for row in rows),
        "kind": str(LedgerKind.CREDIT),
    }
    del line["id"]
    _add_line(connection, line)


def _add_line(connection: Connection, line: Mapping[str, object]) -> None:
    """Add a ledger line, and queue it for the log that can be proved."""
    added = connection.execute(insert(ledger).values(line))
    queue_line(connection, ledger.name, added.inserted_primary_key or ())


def _add_transition_events(connection: Connection, step: Transition) -> None:
    """Add an event for each state that was entered, and the transition's own events."""
    rows = [
        {
            "request_id": step.request.id,
            "epoch": lifecycle.epoch_of(step.request),
            "at": step.at,
            "kind": "state",
            "data": event_data(step, state),
        }
        for state in step.entered
    ]
    rows += [
        {
            "request_id": step.request.id,
            "epoch": lifecycle.epoch_of(step.request),
            "at": step.at,
            "kind": event.kind,
            "data": dict(event.data),
        }
        for event in step.events
    ]
    if rows:
        connection.execute(insert(events), rows)


def postpone(connection: Connection, starts: Mapping[str, float], *, until: float) -> None:
    for lease_id, at in starts.items():
        connection.execute(
            update(leases)
            .where(leases.c.id == lease_id, leases.c.released_at.is_(None))
            .where(leases.c.charged_until == leases.c.granted_at)
            .values(granted_at=at, charged_until=at)
        )
    renew(connection, starts, until=until)


def renew(connection: Connection, signs: Mapping[str, float], *, until: float) -> None:
    for at in sorted(set(signs.values())):
        lease_ids = [lease_id for lease_id, seen_at in signs.items() if seen_at == at]
        connection.execute(
            update(leases)
            .where(leases.c.id.in_(lease_ids), leases.c.released_at.is_(None))
            .values(state=str(LeaseState.LIVE), seen_at=at, expires_at=until)
        )


def suspect(connection: Connection, lease_ids: Sequence[str]) -> None:
    connection.execute(
        update(leases)
        .where(leases.c.id.in_(lease_ids), leases.c.released_at.is_(None))
        .values(state=str(LeaseState.SUSPECT))
    )


def charge(connection: Connection, lease_ids: Sequence[str], *, now: float) -> None:
    # Not past ``now``: a sign of life from a clock that runs ahead is charged once its time comes.
    due = LEASES.where(
        leases.c.id.in_(lease_ids), leases.c.released_at.is_(None), leases.c.charged_until < now
    )
    for lease in read_leases(connection, due):
        until = min(lease.seen_at, now)
        after = lifecycle.charged(lease, until)
        if after == lease:
            continue
        interval = lifecycle.due(lease, until)
        _update_lease(connection, after)
        if interval is not None:
            request = queries.request(connection, lease.request_id)
            _charge(connection, request, lease, interval)


def add_events(
    connection: Connection, lease_id: str, new: Sequence[NewEvent]
) -> tuple[EventRecord, ...]:
    request = queries.request_of_lease(connection, lease_id)
    lease = lifecycle.newest(request, lease_id)
    first = min((event.seq for event in new), default=0)
    query = select(events.c.seq).where(events.c.lease_id == lease_id, events.c.seq >= first)
    seen = set(connection.scalars(query))
    rows = []
    for event in new:
        if event.seq in seen:
            continue
        seen.add(event.seq)
        rows.append(
            {
                "request_id": request.id,
                "epoch": lease.epoch,
                "lease_id": lease_id,
                "seq": event.seq,
                "at": event.at,
                "kind": event.kind,
                "data": dict(event.data),
            }
        )
    if not rows:
        return ()
    last = connection.scalar(_LAST_EVENT) or 0
    connection.execute(insert(events), rows)
    if (after := lifecycle.saved(lease, new)) != lease:
        _update_lease(connection, after)
    added = (
        select(events)
        .where(events.c.lease_id == lease_id, events.c.id > last)
        .order_by(events.c.id)
    )
    return to_events(connection.execute(added))


_LAST_EVENT = select(events.c.id).order_by(events.c.id.desc()).limit(1)
