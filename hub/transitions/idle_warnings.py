"""Transitions of idle sessions: warning given, warning withdrawn, session kept by the owner."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Conflict
from ..records.requests import RequestRecord
from ..scheduling.model.idleness import IdleWarning
from ..scheduling.model.states import State
from .transition import EventDraft, Transition


def warn(request: RequestRecord, warning: IdleWarning, *, now: float) -> Transition:
    """Warn a running session that it is idle; a second warning replaces the first."""
    if request.state is not State.RUNNING:
        return Transition(at=now, request=request)
    event = EventDraft(
        kind="idle_warning", data={"stops_at": warning.stops_at, "seen": list(warning.seen)}
    )
    return Transition(at=now, request=replace(request, warning=warning), events=(event,))


def withdraw_warning(request: RequestRecord, why: str, *, now: float) -> Transition:
    """Withdraw the warning, if there is one."""
    if request.warning is None:
        return Transition(at=now, request=request)
    event = EventDraft(kind="idle_over", data={"why": why})
    return Transition(at=now, request=replace(request, warning=None), events=(event,))


def keep(request: RequestRecord, *, now: float) -> Transition:
    """Keep an idle session after its warning; its owner can do this once.

    Raises:
        Conflict: there is no warning, or the session was kept before.
    """
    if request.state is not State.RUNNING or request.warning is None:
        raise Conflict(
            f"{request.id} is not about to be stopped for being idle.",
            accepted="You can keep a session while it has an idle warning.",
        )
    if request.kept_at is not None:
        raise Conflict(
            f"{request.id} was kept before; a session can be kept only once.",
            accepted="Use its CPU or its devices, for example by running a cell: this withdraws "
            "the warning. Or save your work, stop the session, and start another when you need it.",
        )
    event = EventDraft(kind="idle_kept", data={})
    return Transition(at=now, request=replace(request, warning=None, kept_at=now), events=(event,))
