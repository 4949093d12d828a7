"""Transitions of the lifecycle: granted, launched, started, stopped, finished, lost.

The functions are pure: they take a request with its newest lease and return a ``Transition``. A
``Transition`` that returns the same request object changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Final

from ..errors import Conflict, IllegalMove, StaleEpoch
from ..records.audit import AuditEntry
from ..records.events import NewEvent
from ..records.gangs import GangMember
from ..records.json_value import Json
from ..records.leases import Handle, LeaseRecord, LeaseState
from ..records.requests import Cause, CauseCode, NewRequest, RequestRecord
from ..scheduling.model.plan import Start
from ..scheduling.model.snapshot import Device, Kind
from ..scheduling.model.states import ENDINGS, MAY_RUN, TERMINAL, Move, State, after
from .transition import COMES_BACK, EventDraft, LeaseInterval, Transition

MOVE_TO: Mapping[State, Move] = MappingProxyType(
    {State.SUCCEEDED: Move.SUCCEED, **{state: move for move, state in ENDINGS.items()}}
)
"""The move that ends a request in each state."""
MOST_MESSAGE: Final = 4_000
MOST_DETAILS: Final = 32_000
"""Characters of a cause, which an attempt may report: its runner reports less."""


def queued(new: NewRequest, now: float) -> Transition:
    """Create a request in ``queued`` from a submission."""
    request = RequestRecord(
        **{field.name: getattr(new, field.name) for field in fields(new)},
        state=State.QUEUED,
        submitted_at=now,
    )
    return Transition(at=now, request=request, entered=(State.QUEUED,))


def grantable(
    request: RequestRecord | None,
    start: Start,
    devices: Mapping[str, Device],
    taken: Iterable[str],
) -> bool:
    """Return whether a planned start is still possible.

    Args:
        devices: all devices by id.
        taken: ids of devices that other leases hold.
    """
    if request is None or request.state is not State.QUEUED:
        return False
    wanted = start.devices
    return (
        len(wanted) == len(set(wanted)) == _expected_devices(request, start.members)
        and all(name in devices and _suitable(devices[name], request) for name in wanted)
        and not set(wanted).intersection(taken)
    )


def _expected_devices(request: RequestRecord, members: tuple[int, ...]) -> int:
    """Return the number of devices of a start; a gang may start with fewer members."""
    if request.gang is None or not members:
        return request.devices
    roles = zip(request.gang.roles, members, strict=True)
    return sum(role.devices * count for role, count in roles)


def _suitable(device: Device, request: RequestRecord) -> bool:
    return device.schedulable and request.model in (None, device.model)


def grant(
    request: RequestRecord,
    devices: tuple[str, ...],
    *,
    node: str,
    now: float,
    until: float,
    members: tuple[GangMember, ...] = (),
) -> Transition:
    """``queued → granted`` with a lease of the next epoch."""
    state = after(request.state, Move.GRANT)
    epoch = epoch_of(request) + 1
    lease = LeaseRecord(
        id=f"{request.id}.{epoch}",
        request_id=request.id,
        epoch=epoch,
        node=node,
        devices=devices,
        state=LeaseState.LIVE,
        granted_at=now,
        expires_at=until,
        seen_at=now,
        charged_until=now,
        members=members,
    )
    granted = replace(
        request,
        state=state,
        lease=lease,
        moved_for="",
        stopped_for="",
        expedited=False,
        not_before=None,
    )
    return Transition(at=now, request=granted, entered=(state,))


def launch(request: RequestRecord, lease_id: str, *, now: float) -> Transition:
    """``granted → starting``: from now on a process may exist.

    The charge and the time limit of a job count from here: an engine that is busy with other
    starts costs its owner nothing. Those of a session count from its grant, since its devices
    are held for its owner.

    Raises:
        StaleEpoch: the lease is released or is not the newest of the request.
        Conflict: the device is held until its owner claims it.
        IllegalMove: the request is past ``starting``.
    """
    lease = newest(request, lease_id)
    if request.state is State.STARTING:
        return Transition(at=now, request=request)
    if request.unclaimed:
        raise Conflict(
            f"The device of {request.id} is held for its owner.", accepted="Claim it first."
        )
    state = after(request.state, Move.LAUNCH)
    lease = replace(lease, launched_at=now)
    if request.kind is not Kind.SESSION and lease.charged_until == lease.granted_at:
        at = max(now, lease.granted_at)
        lease = replace(lease, granted_at=at, charged_until=at)
    return Transition(
        at=now,
        request=replace(request, state=state, lease=lease),
        entered=(state,),
    )


def start(request: RequestRecord, lease_id: str, handle: Handle, *, now: float) -> Transition:
    """``starting → running`` with this process; the same handle again changes nothing.

    Raises:
        StaleEpoch: the lease is not the newest, or another process runs under it.
    """
    lease = newest(request, lease_id)
    if lease.handle == handle:
        return Transition(at=now, request=request)
    if lease.handle is not None:
        raise StaleEpoch(
            f"Process {lease.handle.pid} already runs under the lease {lease_id}; "
            f"process {handle.pid} may not."
        )
    state = after(request.state, Move.START)
    lease = replace(lease, handle=handle, seen_at=max(lease.seen_at, now))
    first = now if request.started_at is None else request.started_at
    return Transition(
        at=now,
        request=replace(request, state=state, started_at=first, lease=lease),
        entered=(state,),
    )


def stop(
    request: RequestRecord,
    target: State,
    cause: Cause,
    *,
    now: float,
    charge_until: float | None = None,
    audit: AuditEntry | None = None,
) -> Transition:
    """Request the end of a request in the state ``target``.

    ``queued`` and ``granted`` requests end at once and release their devices, charged until ``now``
    or ``charge_until``. ``starting`` and ``running`` requests become ``stopping``. In ``stopping``
    and in terminal states nothing changes, and the first cause is kept. ``audit`` is stored only
    with a change.
    """
    step = _stop(request, target, cause, now=now, charge_until=charge_until)
    return step if step.request is request else replace(step, audit=audit)


def _stop(
    request: RequestRecord,
    target: State,
    cause: Cause,
    *,
    now: float,
    charge_until: float | None,
) -> Transition:
    move = _ending(target)
    if request.state is State.STOPPING and request.target in COMES_BACK:
        # It would have been queued again; now it ends.
        return Transition(at=now, request=replace(request, target=target, cause=storable(cause)))
    if request.state is State.STOPPING or request.state in TERMINAL:
        return Transition(at=now, request=request)
    if request.state in MAY_RUN:
        state = after(request.state, Move.STOP)
        return Transition(
            at=now,
            request=replace(request, state=state, target=target, cause=storable(cause)),
            entered=(state,),
        )
    state = after(request.state, move)
    ended = replace(request, state=state, cause=storable(cause), ended_at=now)
    upto = now if charge_until is None else min(now, charge_until)
    return released(ended, now=now, upto=upto, entered=(state,))


def halt(request: RequestRecord, cause: Cause, *, now: float) -> Transition:
    """Stop an attempt and queue the request again, in its old place.

    ``granted`` requests are queued at once; ``starting`` and ``running`` ones become ``stopping``.
    A request that is stopping as failed, because its device failed, is queued again, too. Other
    states do not change.
    """
    if request.state is State.GRANTED:
        state = after(request.state, Move.RETURN)
        return released(
            replace(request, state=state, expedited=True),
            now=now,
            upto=now,
            entered=(state,),
            forgiven=True,
        )
    if request.state is State.STOPPING and request.target is State.FAILED:
        return Transition(
            at=now, request=replace(request, target=State.HALTED, cause=storable(cause))
        )
    if request.state not in (State.STARTING, State.RUNNING):
        return Transition(at=now, request=request)
    state = after(request.state, Move.STOP)
    return Transition(
        at=now,
        request=replace(request, state=state, target=State.HALTED, cause=storable(cause)),
        entered=(state,),
    )


def amend_cause(request: RequestRecord, cause: Cause, *, now: float) -> Transition:
    """Replace the cause of a stopping request by one that says more."""
    if request.state is not State.STOPPING or request.cause == storable(cause):
        return Transition(at=now, request=request)
    return Transition(at=now, request=replace(request, cause=storable(cause)))


def finish(
    request: RequestRecord,
    lease_id: str,
    *,
    now: float,
    charge_until: float,
    not_before: float | None = None,
) -> Transition:
    """``stopping → target`` once no process is left: release the lease and complete its charge.

    Halted and preempted requests become ``queued`` again, with a back-off until ``not_before``.
    After a device fault, the charge of the lease is credited and the request is expedited. A
    released lease changes nothing.
    """
    if not _holds(request, lease_id):
        return Transition(at=now, request=request)
    if request.state is not State.STOPPING:
        after(request.state, Move.SUCCEED)  # raises IllegalMove: only ``stopping`` has this move
    if request.target is None:
        raise Conflict(f"The request {request.id} is stopping, but has no target state.")
    forgiven = request.cause is not None and request.cause.code is CauseCode.DEVICE_FAULT
    if request.target in COMES_BACK:
        between = after(request.state, COMES_BACK[request.target])
        state = after(between, Move.REQUEUE)
        waiting = replace(
            request,
            state=state,
            target=None,
            cause=None,
            expedited=forgiven,
            not_before=not_before,
        )
        step = released(
            waiting, now=now, upto=charge_until, entered=(between, state), forgiven=forgiven
        )
        return replace(step, lost=request.cause)
    state = after(request.state, _ending(request.target))
    ended = replace(request, state=state, target=None, ended_at=now)
    return released(ended, now=now, upto=charge_until, entered=(state,), forgiven=forgiven)


def give_back(
    request: RequestRecord,
    lease_id: str,
    cause: Cause | None = None,
    *,
    now: float,
    charge_until: float,
    not_before: float | None = None,
) -> Transition:
    """``granted | starting → queued`` if no process ran; a released lease changes nothing.

    Args:
        cause: why the start failed.
        not_before: end of the back-off before the next attempt.
    """
    if not _holds(request, lease_id):
        return Transition(at=now, request=request)
    state = after(request.state, Move.RETURN)
    waiting = replace(request, state=state, not_before=not_before)
    step = released(waiting, now=now, upto=charge_until, entered=(state,))
    return replace(step, lost=None if cause is None else storable(cause))


def lose(
    request: RequestRecord,
    lease_id: str,
    cause: Cause,
    *,
    now: float,
    charge_until: float,
    requeue: bool = False,
    not_before: float | None = None,
) -> Transition:
    """``starting | running → lost → failed``: the processes are gone for an unknown reason.

    With ``requeue``, the request becomes ``lost → queued``, expedited, with a back-off until
    ``not_before``.
    """
    if not _holds(request, lease_id):
        return Transition(at=now, request=request)
    lost = after(request.state, Move.LOSE)
    if requeue:
        state = after(lost, Move.REQUEUE)
        step = released(
            replace(request, state=state, expedited=True, not_before=not_before),
            now=now,
            upto=charge_until,
            entered=(lost, state),
        )
        return replace(step, lost=storable(cause))
    state = after(lost, Move.FAIL)
    ended = replace(request, state=state, cause=storable(cause), ended_at=now)
    return released(ended, now=now, upto=charge_until, entered=(lost, state))


def record_event(
    request: RequestRecord, kind: str, data: Mapping[str, Json], *, now: float
) -> Transition:
    """Add an event to the history; after the end of the request nothing is added."""
    if request.state in TERMINAL:
        return Transition(at=now, request=request)
    return Transition(at=now, request=replace(request), events=(EventDraft(kind=kind, data=data),))


def epoch_of(request: RequestRecord) -> int:
    """Return the number of the newest attempt, 0 before the first."""
    return request.lease.epoch if request.lease else 0


def newest(request: RequestRecord, lease_id: str) -> LeaseRecord:
    """Return the lease if it is live and the newest of the request.

    Raises:
        StaleEpoch: the lease was released, or the request has a newer one.
    """
    lease = request.lease
    if lease is None or not _holds(request, lease_id):
        newer = f" Its newest is {lease.id}." if lease and lease.id != lease_id else ""
        raise StaleEpoch(
            f"The lease {lease_id} is over; the request {request.id} is {request.state}.{newer}",
            accepted="Stop the processes of this lease: their results are ignored.",
        )
    return lease


def saved(lease: LeaseRecord, events: Iterable[NewEvent]) -> LeaseRecord:
    """Return the lease with the time at which its attempt last saved its work."""
    times = [event.at for event in events if event.kind == "saved"]
    last = max([*times, *([] if lease.saved_at is None else [lease.saved_at])], default=None)
    return replace(lease, saved_at=last)


def due(lease: LeaseRecord, upto: float) -> LeaseInterval | None:
    """Return the interval up to ``upto`` that is not charged yet; None if it is empty.

    It never begins before the end of the last charge, so that a clock that was set back causes
    neither a negative entry nor a second charge.
    """
    if not lease.devices or upto <= lease.charged_until:
        return None
    return LeaseInterval(starts_at=lease.charged_until, ends_at=upto, devices=len(lease.devices))


def charged(lease: LeaseRecord, upto: float) -> LeaseRecord:
    """Return the lease as it is after ``due`` was written into the ledger."""
    return replace(lease, charged_until=max(lease.charged_until, upto))


def storable(cause: Cause) -> Cause:
    """Return the cause without characters that databases cannot store: it may quote logs.

    Of a long one the beginning of the message and the end of the details are kept.
    """
    return replace(
        cause,
        message=storable_text(cause.message)[:MOST_MESSAGE],
        details=storable_text(cause.details)[-MOST_DETAILS:],
    )


def storable_text(text: str) -> str:
    """Return a text without characters that databases cannot store."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _holds(request: RequestRecord, lease_id: str) -> bool:
    lease = request.lease
    return lease is not None and lease.id == lease_id and lease.state is not LeaseState.RELEASED


def released(
    request: RequestRecord,
    *,
    now: float,
    upto: float,
    entered: tuple[State, ...],
    forgiven: bool = False,
) -> Transition:
    """Release and charge the live lease, if there is one, and remove its preemption notice.

    With ``forgiven``, the lease is not charged further and its charge is credited. ``now`` may be
    earlier than the grant; the lease never ends before it began.
    """
    lease = request.lease
    if lease is None or lease.state is LeaseState.RELEASED:
        return Transition(at=now, request=request, entered=entered)
    request = replace(request, notice=None)
    lease_charged = lease if forgiven else charged(lease, upto)
    at = max(now, lease_charged.charged_until)
    released_lease = replace(lease_charged, state=LeaseState.RELEASED, released_at=at)
    if forgiven:
        return Transition(
            at=now, request=replace(request, lease=released_lease), entered=entered, credit=True
        )
    return Transition(
        at=now,
        request=replace(request, lease=released_lease),
        entered=entered,
        charge=due(lease, upto),
    )


def _ending(target: State) -> Move:
    try:
        return MOVE_TO[target]
    except KeyError:
        raise IllegalMove(
            f"A request cannot end in the state {target}.",
            accepted=f"Use one of: {', '.join(MOVE_TO)}.",
        ) from None
