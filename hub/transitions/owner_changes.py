"""Transitions on request of the owner: place kept, device claimed, request amended or extended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..errors import Conflict
from ..records.dependencies import FoundResult
from ..records.json_value import Json
from ..records.requests import Cause, RequestChange, RequestRecord, more_than_now
from ..scheduling.model.snapshot import UNTIL_RELEASED, Kind
from ..scheduling.model.states import TERMINAL, State
from ..scheduling.model.text import plural, span
from . import lifecycle
from .transition import EventDraft, Transition

_WAITS = frozenset({State.QUEUED, State.GRANTED})
_RUNS = frozenset({State.STARTING, State.RUNNING})


def keep_place(request: RequestRecord, server_name: str, *, now: float) -> Transition:
    """Keep the place of a queued session under a new server name, and hold it once granted.

    A session that must be claimed already keeps its server name.

    Raises:
        Conflict: the request is not a session that is queued for devices.
    """
    if request.kind is not Kind.SESSION or request.devices == 0:
        raise Conflict(
            f"{request.id} is not a session with devices: it has no place to keep.",
            accepted="Choose a session that is queued for devices.",
        )
    if request.unclaimed and request.state not in TERMINAL:
        return Transition(at=now, request=request)
    if request.state not in _WAITS:
        raise Conflict(
            f"{request.id} is no longer queued: it is {_state(request)}.",
            accepted="Choose a session that is queued for devices.",
        )
    event = EventDraft(kind="kept", data={"server_name": server_name})
    changed = replace(request, server_name=server_name, claim=True, claimed_at=None)
    return Transition(at=now, request=changed, events=(event,))


def claim(request: RequestRecord, *, now: float) -> Transition:
    """Claim the device that is held for the owner; repeating it changes nothing.

    Raises:
        Conflict: the session starts automatically, is still queued, or has ended.
    """
    if not request.claim:
        raise Conflict(
            f"{request.id} starts automatically and cannot be claimed.",
            accepted="Choose a session whose device is held for you.",
        )
    if request.state in TERMINAL or request.state is State.STOPPING:
        why = f" {request.cause.message}" if request.cause else ""
        raise Conflict(
            f"{request.id} can no longer be claimed: it is {_state(request)}.{why}",
            accepted="Start a new session.",
        )
    if request.claimed_at is not None:
        return Transition(at=now, request=request)
    if request.state is State.QUEUED:
        raise Conflict(
            f"{request.id} is still queued: it has no device to claim yet.",
            accepted="Claim it once its device is granted; it is then held for you.",
        )
    return Transition(
        at=now,
        request=replace(request, claimed_at=now),
        events=(EventDraft(kind="claimed", data={}),),
    )


def cancel_unclaimed(
    request: RequestRecord, cause: Cause, *, now: float, charge_until: float
) -> Transition:
    """``granted → cancelled`` for a session that was not claimed in time; releases its lease.

    A session that was claimed meanwhile does not change.
    """
    if request.state is not State.GRANTED or not request.unclaimed:
        return Transition(at=now, request=request)
    return lifecycle.stop(request, State.CANCELLED, cause, now=now, charge_until=charge_until)


def extend(
    request: RequestRecord, seconds: int, *, by: str, now: float, seen: int | None = None
) -> Transition:
    """Add seconds to the time limit of a running request.

    With ``seen``, add them to that limit; a request that has the sum already does not change.

    Raises:
        Conflict: the request does not run.
    """
    if request.state not in _RUNS:
        raise Conflict(
            f"{request.id} cannot be extended: it is {_state(request)}.",
            accepted="Choose a running session or job.",
        )
    added = more_than_now(request, seconds, seen)
    if not added:
        return Transition(at=now, request=request)
    total = request.seconds + added
    event = EventDraft(kind="extended", data={"seconds": total, "added": added, "by": by})
    return Transition(at=now, request=replace(request, seconds=total), events=(event,))


def release(
    request: RequestRecord, results: Mapping[str, FoundResult] = MappingProxyType({}), *, now: float
) -> Transition:
    """Let a request start that has waited for other ones; repeating it changes nothing.

    ``results``: the values that these have given, by parameter.
    """
    if request.state is not State.QUEUED or request.not_before != UNTIL_RELEASED:
        return Transition(at=now, request=request)
    job = request.job
    if job is not None and results:
        values = {name: found.value for name, found in results.items()}
        origins = tuple(
            replace(each, source=results[each.name].source) if each.name in results else each
            for each in job.results
        )
        job = replace(job, parameters={**job.parameters, **values}, results=origins)
    return Transition(at=now, request=replace(request, not_before=None, job=job))


def amend(request: RequestRecord, wanted: RequestChange, *, now: float) -> Transition:
    """Reduce devices or time limit of a queued request, or change its model or group.

    The time of submission is kept, and with it the place among equal requests.

    Raises:
        Conflict: the request is not queued, or would become larger.
    """
    devices = request.devices if wanted.devices is None else wanted.devices
    seconds = request.seconds if wanted.seconds is None else wanted.seconds
    group = request.group if wanted.group is None else wanted.group
    model = request.model if wanted.model is None else wanted.model or None
    if request.state is not State.QUEUED:
        raise Conflict(
            f"{request.id} is no longer queued: it is {_state(request)}.",
            accepted="Choose a queued request.",
        )
    if devices > request.devices or seconds > request.seconds:
        raise Conflict(
            f"{request.id} asks for {plural(request.devices, 'device')} and "
            f"{span(request.seconds)}: while queued, it can only be reduced.",
            accepted="Choose fewer devices or a shorter time limit, or submit a new request.",
        )
    if request.gang is not None and devices != request.devices:
        raise Conflict(
            f"The devices of {request.id} belong to its members and cannot be changed.",
            accepted="Submit the job again with other roles.",
        )
    after = replace(request, devices=devices, seconds=seconds, group=group, model=model)
    if after == request:
        return Transition(at=now, request=request)
    data: dict[str, Json] = {"devices": devices, "seconds": seconds, "group": group}
    event = EventDraft(kind="changed", data={**data, "model": model})
    after = replace(
        after,
        expected=None if request.expected is None else min(request.expected, seconds),
        changes=request.changes + 1,
    )
    return Transition(at=now, request=after, events=(event,))


def check_name_is_free(request: RequestRecord, name: str, live: RequestRecord | None) -> None:
    """Raise Conflict if another live session of the owner has this name."""
    if live is not None and live.id != request.id:
        raise Conflict(
            f"The session {name or 'default'!r} of {request.owner} is {_state(live)} already.",
            accepted="Choose a name that no other session has.",
        )


def _state(request: RequestRecord) -> str:
    return str(request.state).replace("_", " ")
