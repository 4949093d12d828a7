"""What asking devices back makes of a request: notice, withdrawal, and the stop that preempts."""

from __future__ import annotations

from dataclasses import replace

from ...records.notices import StopNotice
from ...records.requests import Cause, RequestRecord
from ...scheduling.model.states import Move, State, after
from .transitions import EventDraft, Transition, released, storable

_ASKED = frozenset({State.STARTING, State.RUNNING})


def noticed(request: RequestRecord, notice: StopNotice) -> Transition:
    """Only what holds devices and was not asked before: the first notice stands."""
    if request.state not in _ASKED or request.notice is not None:
        return Transition(request=request)
    told = EventDraft(kind="notice", data=notice.told)
    return Transition(request=replace(request, notice=notice), told=(told,))


def withdrawn(request: RequestRecord, why: str) -> Transition:
    """The devices are not needed any more; what is stopping already goes on doing so."""
    if request.notice is None or request.state not in _ASKED:
        return Transition(request=request)
    told = EventDraft(kind="notice_over", data={"why": why})
    return Transition(request=replace(request, notice=None), told=(told,))


def preempted(
    request: RequestRecord, cause: Cause, notice: StopNotice, *, now: float
) -> Transition:
    """Towards another attempt in its old place, after its devices were asked back.

    What has not begun is queued at once, and not charged. What ended meanwhile, or is on its
    way out, stays as it is.
    """
    marked = replace(request, moved_for=notice.moved_for, stopped_for=notice.stopped_for)
    if request.state is State.GRANTED and request.lease is not None:
        state = after(request.state, Move.GIVE_BACK)
        since = request.lease.granted_at
        return released(replace(marked, state=state), now=now, upto=since, entered=(state,))
    if request.state not in _ASKED:
        return Transition(request=request)
    state = after(request.state, Move.STOP)
    stopping = replace(marked, state=state, target=State.PREEMPTED, cause=storable(cause))
    return Transition(request=stopping, entered=(state,))
