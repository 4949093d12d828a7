"""Transitions that the owner of a request asks for: place kept, device claimed, limits changed."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Conflict
from ..records.json_value import Json
from ..records.requests import Cause, RequestChange, RequestRecord, more_than_now
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL, State
from ..scheduling.model.text import plural, span
from . import lifecycle
from .transition import EventDraft, Transition

_WAITS = frozenset({State.QUEUED, State.GRANTED})
_RUNS = frozenset({State.STARTING, State.RUNNING})


def keep_place(request: RequestRecord, server_name: str, *, now: float) -> Transition:
    """Keep the place of a queued session under this server name; once granted, it is held.

    A session that is held or will be held stays as it is, its name included.

    Raises:
        Conflict: it is not a session that is queued for devices.
    """
    if request.kind is not Kind.SESSION or request.devices == 0:
        raise Conflict(
            f"{request.id} asks for no device as a session: there is no place to keep.",
            accepted="A session that waits for devices.",
        )
    if request.unclaimed and request.state not in TERMINAL:
        return Transition(at=now, request=request)
    if request.state not in _WAITS:
        raise Conflict(
            f"{request.id} does not wait any more: it is {_state(request)}.",
            accepted="A session that waits for devices.",
        )
    told = EventDraft(kind="kept", data={"server_name": server_name})
    changed = replace(request, server_name=server_name, claim=True, claimed_at=None)
    return Transition(at=now, request=changed, told=(told,))


def claim(request: RequestRecord, *, now: float) -> Transition:
    """Claim the device that is held for the owner; repeating it changes nothing.

    Raises:
        Conflict: the session starts by itself, is still queued, or has ended.
    """
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
        return Transition(at=now, request=request)
    if request.state is State.QUEUED:
        raise Conflict(
            f"{request.id} still waits in the queue: there is no device to claim yet.",
            accepted="Claim it when its device has come; it is held for you then.",
        )
    return Transition(
        at=now,
        request=replace(request, claimed_at=now),
        told=(EventDraft(kind="claimed", data={}),),
    )


def cancel_unclaimed(
    request: RequestRecord, cause: Cause, *, now: float, charge_until: float
) -> Transition:
    """``granted → cancelled`` for a session that was not claimed in time, with its lease released.

    A session that was claimed meanwhile stays as it is.
    """
    if request.state is not State.GRANTED or not request.unclaimed:
        return Transition(at=now, request=request)
    return lifecycle.stop(request, State.CANCELLED, cause, now=now, charge_until=charge_until)


def extend(
    request: RequestRecord, seconds: int, *, by: str, now: float, seen: int | None = None
) -> Transition:
    """Add seconds to the time limit of a running request.

    With ``seen``, add them to that limit: a request that has it already stays as it is.

    Raises:
        Conflict: it does not run.
    """
    if request.state not in _RUNS:
        raise Conflict(
            f"{request.id} cannot be extended: it is {_state(request)}.",
            accepted="A session or job that runs.",
        )
    added = more_than_now(request, seconds, seen)
    if not added:
        return Transition(at=now, request=request)
    total = request.seconds + added
    told = EventDraft(kind="extended", data={"seconds": total, "added": added, "by": by})
    return Transition(at=now, request=replace(request, seconds=total), told=(told,))


def amend(request: RequestRecord, wanted: RequestChange, *, now: float) -> Transition:
    """Reduce what a queued request asks for, or change its model or group; its age is kept.

    Raises:
        Conflict: it is not queued, or asks for more.
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
        return Transition(at=now, request=request)
    data: dict[str, Json] = {"devices": devices, "seconds": seconds, "group": group}
    told = EventDraft(kind="changed", data={**data, "model": model})
    after = replace(
        after,
        expected=None if request.expected is None else min(request.expected, seconds),
        changes=request.changes + 1,
    )
    return Transition(at=now, request=after, told=(told,))


def check_name_is_free(request: RequestRecord, name: str, live: RequestRecord | None) -> None:
    """Raise Conflict if another live session of the owner has this name."""
    if live is not None and live.id != request.id:
        raise Conflict(
            f"The session {name or 'default'!r} of {request.owner} is {_state(live)} already.",
            accepted="A name that no session of its owner has.",
        )


def _state(request: RequestRecord) -> str:
    return str(request.state).replace("_", " ")
