"""Transitions of notices: given, withdrawn, request preempted, request halted."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Conflict
from ..records.audit import AuditEntry
from ..records.notices import NoticeKind, StopNotice
from ..records.requests import Cause, RequestRecord
from ..scheduling.model.states import TERMINAL, Move, State, after
from .lifecycle import released, storable
from .transition import EventDraft, Transition

_HOLDS_DEVICES = frozenset({State.STARTING, State.RUNNING})


def notify(request: RequestRecord, notice: StopNotice, *, now: float) -> Transition:
    """Give a preemption notice to a request that holds devices; the first notice is kept.

    Requests in other states do not change.
    """
    if request.state not in _HOLDS_DEVICES or request.notice is not None:
        return Transition(at=now, request=request)
    event = EventDraft(kind="notice", data=notice.data)
    return Transition(at=now, request=replace(request, notice=notice), events=(event,))


def withdraw_notice(request: RequestRecord, why: str, *, now: float) -> Transition:
    """Withdraw the notice, unless the request is already stopping."""
    if request.notice is None or request.state not in _HOLDS_DEVICES:
        return Transition(at=now, request=request)
    event = EventDraft(kind="notice_over", data={"why": why})
    return Transition(at=now, request=replace(request, notice=None), events=(event,))


def announce_halt(
    request: RequestRecord, notice: StopNotice, *, now: float, audit: AuditEntry | None = None
) -> Transition:
    """Give a running job the notice that a user halts it; repeating it changes nothing.

    It replaces a preemption notice, whose end it keeps if that is sooner.

    Raises:
        Conflict: the job does not run.
    """
    before = request.notice
    if request.state in TERMINAL:
        raise Conflict(
            f"{request.id} has ended and cannot be halted.",
            accepted="Resume it, unless it has succeeded.",
        )
    if request.state is State.STOPPING:
        raise Conflict(
            f"{request.id} is being stopped already.", accepted="Wait until it has ended."
        )
    if request.state not in _HOLDS_DEVICES:
        raise Conflict(
            f"{request.id} does not run and cannot be halted.", accepted="Cancel it instead."
        )
    if before is not None and before.kind is NoticeKind.HALT:
        return Transition(at=now, request=request)
    if before is not None:
        notice = replace(notice, stops_at=min(notice.stops_at, before.stops_at))
    event = EventDraft(kind="notice", data=notice.data)
    return Transition(at=now, request=replace(request, notice=notice), events=(event,), audit=audit)


def preempt(request: RequestRecord, cause: Cause, notice: StopNotice, *, now: float) -> Transition:
    """Stop a request after its notice and queue it again, in its old place.

    ``granted`` requests are queued at once and not charged; ``starting`` and ``running`` ones
    become ``stopping``; other states do not change.
    """
    marked = replace(request, moved_for=notice.moved_for, stopped_for=notice.stopped_for)
    if request.state is State.GRANTED and request.lease is not None:
        state = after(request.state, Move.RETURN)
        since = request.lease.granted_at
        return released(replace(marked, state=state), now=now, upto=since, entered=(state,))
    if request.state not in _HOLDS_DEVICES:
        return Transition(at=now, request=request)
    state = after(request.state, Move.STOP)
    stopping = replace(marked, state=state, target=State.PREEMPTED, cause=storable(cause))
    return Transition(at=now, request=stopping, entered=(state,))
