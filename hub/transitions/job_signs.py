"""Transitions of the signs that something is wrong with a running job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..records.json_value import Json
from ..records.leases import JobSign
from ..records.requests import RequestRecord
from ..scheduling.model.states import State
from .transition import EventDraft, Transition

FOUND_EVENT: Final = "job_sign"
OVER_EVENT: Final = "job_sign_over"
QUIET_SECONDS: Final = 600.0
"""A sign has ended when it was not found for so long."""
REFRESH_SECONDS: Final = 120.0
"""A sign that lasts is stored again after so long, with its newest figures."""


def record_signs(
    request: RequestRecord, lease_id: str, found: Sequence[JobSign], *, now: float
) -> Transition:
    """Store which signs an attempt shows now.

    A sign gets an event when it is first found, and one when it has ended. One that is found again
    in the same attempt continues without another event, so that it is announced once.
    """
    lease = request.lease
    if lease is None or lease.id != lease_id or request.state is not State.RUNNING:
        return Transition(at=now, request=request)
    signs, events = merged(lease.signs, found, now=now)
    if signs == lease.signs:
        return Transition(at=now, request=request)
    changed = replace(request, lease=replace(lease, signs=signs))
    return Transition(at=now, request=changed, events=events)


def merged(
    known: Sequence[JobSign], found: Sequence[JobSign], *, now: float
) -> tuple[tuple[JobSign, ...], tuple[EventDraft, ...]]:
    """Return the signs of an attempt after another look, and the events of this look."""
    newest = {sign.kind: sign for sign in found}
    signs: list[JobSign] = []
    events: list[EventDraft] = []
    for sign in known:
        again = newest.pop(sign.kind, None)
        if again is not None:
            due = sign.ended_at is not None or not 0 <= now - sign.seen_at < REFRESH_SECONDS
            kept = replace(sign, seen_at=now, ended_at=None, figures=again.figures)
            signs.append(kept if due else sign)
        elif sign.ended_at is None and not 0 <= now - sign.seen_at < QUIET_SECONDS:
            signs.append(replace(sign, ended_at=now))
            events.append(EventDraft(kind=OVER_EVENT, data={"sign": str(sign.kind)}))
        else:
            signs.append(sign)
    for sign in newest.values():
        signs.append(sign)
        data: dict[str, Json] = {
            "sign": str(sign.kind),
            "since": sign.since,
            "figures": dict(sign.figures),
        }
        events.append(EventDraft(kind=FOUND_EVENT, data=data))
    return tuple(signs), tuple(events)
