"""What people change about a request that goes on: its place kept, its device claimed, its time.

Like the transitions of the lifecycle each of these is a value in and a ``Transition`` out, and a
``Transition`` whose request is the one that came in changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import Conflict
from ...records.json_value import Json
from ...records.requests import Cause, RequestChange, RequestRecord, more_than_now
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import TERMINAL, State
from ...scheduling.model.text import plural, span
from . import transitions
from .transitions import EventDraft, Transition

_WAITS = frozenset({State.QUEUED, State.GRANTED})
_RUNS = frozenset({State.STARTING, State.RUNNING})


def kept(request: RequestRecord, server_name: str) -> Transition:
    """It keeps its place, under this name, and once granted it is held for its owner."""
    if request.kind is not Kind.SESSION or request.devices == 0:
        raise Conflict(
            f"{request.id} asks for no device as a session: there is no place to keep.",
            accepted="A session that waits for devices.",
        )
    if request.unclaimed and request.state not in TERMINAL:
        return Transition(request=request)
    if request.state not in _WAITS:
        raise Conflict(
            f"{request.id} does not wait any more: it is {_state(request)}.",
            accepted="A session that waits for devices.",
        )
    told = EventDraft(kind="kept", data={"server_name": server_name})
    changed = replace(request, server_name=server_name, claim=True, claimed_at=None)
    return Transition(request=changed, told=(told,))


def claimed(request: RequestRecord, *, now: float) -> Transition:
    """Its owner comes for the device that is held."""
    if not request.claim:
        raise Conflict(
            f"{request.id} starts by itself: there is nothing to claim.",
            accepted="A session whose device is held for its owner.",
        )
    if request.state in TERMINAL or request.state is State.STOPPING:
        why = f" {request.cause.message}" if request.cause else ""
        raise Conflict(
            f"{request.id} cannot be claimed any more: it is {_state(request)}.{why}",
            accepted="Ask for a new session.",
        )
    if request.claimed_at is not None:
        return Transition(request=request)
    if request.state is State.QUEUED:
        raise Conflict(
            f"{request.id} still waits in the queue: there is no device to claim yet.",
            accepted="Claim it when its device has come; it is held for you then.",
        )
    return Transition(
        request=replace(request, claimed_at=now), told=(EventDraft(kind="claimed", data={}),)
    )


def unclaimed(
    request: RequestRecord, cause: Cause, *, now: float, charge_until: float
) -> Transition:
    """Nobody came for what is held; whoever came a moment ago keeps it."""
    if request.state is not State.GRANTED or not request.unclaimed:
        return Transition(request=request)
    return transitions.stop(request, State.CANCELLED, cause, now=now, charge_until=charge_until)


def extended(request: RequestRecord, seconds: int, by: str, seen: int | None) -> Transition:
    """It may run for so many seconds longer than it may now, or than ``seen``."""
    if request.state not in _RUNS:
        raise Conflict(
            f"{request.id} cannot be extended: it is {_state(request)}.",
            accepted="A session or job that runs.",
        )
    added = more_than_now(request, seconds, seen)
    if not added:
        return Transition(request=request)
    total = request.seconds + added
    told = EventDraft(kind="extended", data={"seconds": total, "added": added, "by": by})
    return Transition(request=replace(request, seconds=total), told=(told,))


def changed(request: RequestRecord, wanted: RequestChange) -> Transition:
    """It asks for less, for another model or in another group.

    Who wants more stands at the end like everybody.
    """
    devices = request.devices if wanted.devices is None else wanted.devices
    seconds = request.seconds if wanted.seconds is None else wanted.seconds
    group = request.group if wanted.group is None else wanted.group
    model = request.model if wanted.model is None else wanted.model or None
    if request.state is not State.QUEUED:
        raise Conflict(
            f"{request.id} does not wait any more: it is {_state(request)}.",
            accepted="A request that waits in the queue.",
        )
    if devices > request.devices or seconds > request.seconds:
        raise Conflict(
            f"{request.id} asks for {plural(request.devices, 'device')} and "
            f"{span(request.seconds)}: while it waits, it can be changed to less only.",
            accepted="Fewer devices or a shorter time limit. For more, submit another one.",
        )
    after = replace(request, devices=devices, seconds=seconds, group=group, model=model)
    if after == request:
        return Transition(request=request)
    data: dict[str, Json] = {"devices": devices, "seconds": seconds, "group": group}
    told = EventDraft(kind="changed", data={**data, "model": model})
    after = replace(
        after,
        expected=None if request.expected is None else min(request.expected, seconds),
        changes=request.changes + 1,
    )
    return Transition(request=after, told=(told,))


def check_name_is_free(request: RequestRecord, name: str, live: RequestRecord | None) -> None:
    """Raises Conflict where another live session of its owner has this name."""
    if live is not None and live.id != request.id:
        raise Conflict(
            f"The session {name or 'default'!r} of {request.owner} is {_state(live)} already.",
            accepted="A name that no session of its owner has.",
        )


def _state(request: RequestRecord) -> str:
    return str(request.state).replace("_", " ")
