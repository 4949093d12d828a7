"""What each move makes of a request, as values: both stores keep what these return.

A move gets the request as it stands, with its newest lease in it, and gives a ``Transition``.
Nothing here reads or writes anything, so the two stores cannot come to differ in the rules,
only in how they remember. A ``Transition`` whose request is the one that came in changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...errors import Conflict, IllegalMove, StaleEpoch
from ...records.events import NewEvent
from ...records.json_value import Json
from ...records.leases import Handle, LeaseRecord, LeaseState
from ...records.requests import Cause, CauseCode, NewRequest, RequestRecord
from ...scheduling.model.snapshot import Device
from ...scheduling.model.states import ENDINGS, MAY_RUN, TERMINAL, Move, State, after
from ...scheduling.quota import accounting

MOVE_TO: Mapping[State, Move] = MappingProxyType(
    {State.SUCCEEDED: Move.SUCCEED, **{state: move for move, state in ENDINGS.items()}}
)
"""The move that ends a request in this state."""
COMES_BACK: Mapping[State, Move] = MappingProxyType(
    {State.HALTED: Move.HALT, State.PREEMPTED: Move.PREEMPT}
)
"""States on the way from ``stopping`` back to the queue, each with the move into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInterval:
    """A span in which a lease held devices, about to be charged."""

    starts_at: float
    ends_at: float
    devices: int

    @property
    def device_seconds(self) -> float:
        return accounting.device_seconds(self.devices, self.starts_at, self.ends_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """A line of the history that is no change of state."""

    kind: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What a move came to.

    Attributes:
        request: as it is afterwards, its lease included.
        entered: the states it went into, in order; each becomes an event.
        charge: what goes into the ledger in the same transaction.
        credit: everything that the ledger holds of the lease is taken back.
        lost: why the attempt was lost, halted or preempted, where the request itself goes on.
        told: what else becomes an event, after the states.
    """

    request: RequestRecord
    entered: tuple[State, ...] = ()
    charge: LeaseInterval | None = None
    credit: bool = False
    lost: Cause | None = None
    told: tuple[EventDraft, ...] = ()


def queued(new: NewRequest, now: float) -> Transition:
    """A request that was just accepted."""
    request = RequestRecord(
        id=new.id,
        kind=new.kind,
        owner=new.owner,
        group=new.group,
        devices=new.devices,
        seconds=new.seconds,
        idempotency_key=new.idempotency_key,
        model=new.model,
        priority=new.priority,
        server_name=new.server_name,
        job=new.job,
        labels=new.labels,
        state=State.QUEUED,
        submitted_at=now,
        claim=new.claim,
        preemptible=new.preemptible,
        deadline=new.deadline,
        expected=new.expected,
        image=new.image,
    )
    return Transition(request=request, entered=(State.QUEUED,))


def grantable(
    request: RequestRecord | None,
    wanted: tuple[str, ...],
    devices: Mapping[str, Device],
    taken: Iterable[str],
) -> bool:
    """Whether a start that was planned a moment ago still holds."""
    if request is None or request.state is not State.QUEUED:
        return False
    return (
        len(wanted) == len(set(wanted)) == request.devices
        and all(name in devices and _suits(devices[name], request) for name in wanted)
        and not set(wanted).intersection(taken)
    )


def _suits(device: Device, request: RequestRecord) -> bool:
    return device.lendable and request.model in (None, device.model)


def grant(
    request: RequestRecord, devices: tuple[str, ...], *, node: str, now: float, until: float
) -> Transition:
    """``queued → granted`` under the next epoch."""
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
    )
    granted = replace(request, state=state, lease=lease, moved_for="", stopped_for="")
    return Transition(request=granted, entered=(state,))


def launch(request: RequestRecord, lease_id: str, *, now: float) -> Transition:
    """``granted → starting``; from here on something may be running."""
    lease = newest(request, lease_id)
    if request.state is State.STARTING:
        return Transition(request=request)
    if request.unclaimed:
        raise Conflict(
            f"The device of {request.id} is held for its owner.", accepted="Claim it first."
        )
    state = after(request.state, Move.LAUNCH)
    return Transition(
        request=replace(request, state=state, lease=replace(lease, launched_at=now)),
        entered=(state,),
    )


def started(request: RequestRecord, lease_id: str, handle: Handle, *, now: float) -> Transition:
    """``starting → running``: this process, and no other, is the attempt."""
    lease = newest(request, lease_id)
    if lease.handle == handle:
        return Transition(request=request)
    if lease.handle is not None:
        raise StaleEpoch(
            f"Process {lease.handle.pid} already runs under the lease {lease_id}; "
            f"process {handle.pid} may not."
        )
    state = after(request.state, Move.START)
    lease = replace(lease, handle=handle, seen_at=max(lease.seen_at, now))
    first = now if request.started_at is None else request.started_at
    return Transition(
        request=replace(request, state=state, started_at=first, lease=lease), entered=(state,)
    )


def stop(
    request: RequestRecord,
    target: State,
    cause: Cause,
    *,
    now: float,
    charge_until: float | None = None,
) -> Transition:
    """Towards an end; what holds no process ends at once, charged until now or less."""
    move = _ending(target)
    if request.state is State.STOPPING and request.target in COMES_BACK:
        # It was to be tried again; whoever ends it now ends it for good.
        return Transition(request=replace(request, target=target, cause=storable(cause)))
    if request.state is State.STOPPING or request.state in TERMINAL:
        return Transition(request=request)
    if request.state in MAY_RUN:
        state = after(request.state, Move.STOP)
        return Transition(
            request=replace(request, state=state, target=target, cause=storable(cause)),
            entered=(state,),
        )
    state = after(request.state, move)
    ended = replace(request, state=state, cause=storable(cause), ended_at=now)
    upto = now if charge_until is None else min(now, charge_until)
    return released(ended, now=now, upto=upto, entered=(state,))


def halt(request: RequestRecord, cause: Cause, *, now: float) -> Transition:
    """Towards another attempt, in its old place; what has ended or waits stays as it is.

    A job that failed while its device did is on its way out as failed: it is tried again too.
    """
    if request.state is State.GRANTED:
        state = after(request.state, Move.GIVE_BACK)
        return released(
            replace(request, state=state), now=now, upto=now, entered=(state,), forgiven=True
        )
    if request.state is State.STOPPING and request.target is State.FAILED:
        return Transition(request=replace(request, target=State.HALTED, cause=storable(cause)))
    if request.state not in (State.STARTING, State.RUNNING):
        return Transition(request=request)
    state = after(request.state, Move.STOP)
    return Transition(
        request=replace(request, state=state, target=State.HALTED, cause=storable(cause)),
        entered=(state,),
    )


def finish(request: RequestRecord, lease_id: str, *, now: float, charge_until: float) -> Transition:
    """``stopping → target``; what was halted or preempted goes back to the queue."""
    if not _holds(request, lease_id):
        return Transition(request=request)
    if request.state is not State.STOPPING:
        after(request.state, Move.SUCCEED)  # only ``stopping`` has this move: says so
    if request.target is None:
        raise Conflict(f"The request {request.id} is stopping, but it is not known towards what.")
    forgiven = request.cause is not None and request.cause.code is CauseCode.DEVICE_FAULT
    if request.target in COMES_BACK:
        between = after(request.state, COMES_BACK[request.target])
        state = after(between, Move.REQUEUE)
        waiting = replace(request, state=state, target=None, cause=None)
        step = released(
            waiting, now=now, upto=charge_until, entered=(between, state), forgiven=forgiven
        )
        return replace(step, lost=request.cause)
    state = after(request.state, _ending(request.target))
    ended = replace(request, state=state, target=None, ended_at=now)
    return released(ended, now=now, upto=charge_until, entered=(state,), forgiven=forgiven)


def give_back(
    request: RequestRecord, lease_id: str, *, now: float, charge_until: float
) -> Transition:
    """``granted | starting → queued``."""
    if not _holds(request, lease_id):
        return Transition(request=request)
    state = after(request.state, Move.GIVE_BACK)
    waiting = replace(request, state=state)
    return released(waiting, now=now, upto=charge_until, entered=(state,))


def lose(
    request: RequestRecord,
    lease_id: str,
    cause: Cause,
    *,
    now: float,
    charge_until: float,
    requeue: bool = False,
) -> Transition:
    """``starting | running → lost → failed``, or back to the queue for another attempt."""
    if not _holds(request, lease_id):
        return Transition(request=request)
    lost = after(request.state, Move.LOSE)
    if requeue:
        state = after(lost, Move.REQUEUE)
        step = released(
            replace(request, state=state), now=now, upto=charge_until, entered=(lost, state)
        )
        return replace(step, lost=storable(cause))
    state = after(lost, Move.FAIL)
    ended = replace(request, state=state, cause=storable(cause), ended_at=now)
    return released(ended, now=now, upto=charge_until, entered=(lost, state))


def told(request: RequestRecord, kind: str, data: Mapping[str, Json]) -> Transition:
    """A line of the history, and nothing else; none where the history is complete."""
    if request.state in TERMINAL:
        return Transition(request=request)
    return Transition(request=replace(request), told=(EventDraft(kind=kind, data=data),))


def epoch_of(request: RequestRecord) -> int:
    """Number of the newest attempt, 0 before the first."""
    return request.lease.epoch if request.lease else 0


def newest(request: RequestRecord, lease_id: str) -> LeaseRecord:
    """The lease, if it may still act.

    Raises:
        StaleEpoch: it was released, or the request has a newer one.
    """
    lease = request.lease
    if lease is None or not _holds(request, lease_id):
        newer = f" Its newest is {lease.id}." if lease and lease.id != lease_id else ""
        raise StaleEpoch(
            f"The lease {lease_id} is over; the request {request.id} is {request.state}.{newer}",
            accepted="Stop: nothing that runs under this lease counts any more.",
        )
    return lease


def saved(lease: LeaseRecord, events: Iterable[NewEvent]) -> LeaseRecord:
    """The lease after its attempt reported these: it knows when its work was last saved."""
    times = [event.at for event in events if event.kind == "saved"]
    last = max([*times, *([] if lease.saved_at is None else [lease.saved_at])], default=None)
    return replace(lease, saved_at=last)


def due(lease: LeaseRecord, upto: float) -> LeaseInterval | None:
    """What the ledger lacks of a lease up to ``upto``; None where that is nothing.

    The end never lies before what is already charged, so that a clock that was set back
    makes neither a negative entry nor a second one.
    """
    if not lease.devices or upto <= lease.charged_until:
        return None
    return LeaseInterval(starts_at=lease.charged_until, ends_at=upto, devices=len(lease.devices))


def charged(lease: LeaseRecord, upto: float) -> LeaseRecord:
    """The lease after ``due`` went into the ledger."""
    return replace(lease, charged_until=max(lease.charged_until, upto))


def event_data(step: Transition, state: State) -> dict[str, Json]:
    """What the ``state`` event of one entered state says."""
    data: dict[str, Json] = {"state": str(state)}
    cause, lease = step.request.cause, step.request.lease
    if state in (State.LOST, *COMES_BACK) and step.lost is not None:
        cause = step.lost
    if cause is not None:
        data["cause"] = {"code": str(cause.code), "message": cause.message}
    if state is State.GRANTED and lease is not None:
        data |= {"lease": lease.id, "devices": list(lease.devices)}
    return data


def storable(cause: Cause) -> Cause:
    """Its texts without what no database keeps (they quote logs, and logs hold anything)."""

    def clean(text: str) -> str:
        return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")

    return replace(cause, message=clean(cause.message), details=clean(cause.details))


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
    """The lease, where there is a live one, is released and charged in the same step; with it
    goes the notice that its devices are asked back.

    One that is forgiven is charged nothing more, and gets back what it was charged. Whoever asks
    may have looked at the clock before the lease was granted: it ends no earlier than it began.
    """
    lease = request.lease
    if lease is None or lease.state is LeaseState.RELEASED:
        return Transition(request=request, entered=entered)
    request = replace(request, notice=None)
    lease_charged = lease if forgiven else charged(lease, upto)
    at = max(now, lease_charged.charged_until)
    over = replace(lease_charged, state=LeaseState.RELEASED, released_at=at)
    if forgiven:
        return Transition(request=replace(request, lease=over), entered=entered, credit=True)
    return Transition(
        request=replace(request, lease=over), entered=entered, charge=due(lease, upto)
    )


def _ending(target: State) -> Move:
    try:
        return MOVE_TO[target]
    except KeyError:
        raise IllegalMove(
            f"A request cannot be asked to end in {target}.",
            accepted=f"It may end in: {', '.join(MOVE_TO)}.",
        ) from None
