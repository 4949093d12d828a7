"""What warning, sparing and keeping an idle session make of its request (see ``moves``)."""

from __future__ import annotations

from dataclasses import replace

from ...errors import Conflict
from ...records.requests import RequestRecord
from ...scheduling.model.idleness import IdleWarning
from ...scheduling.model.states import State
from .transitions import EventDraft, Transition


def warned(request: RequestRecord, warning: IdleWarning) -> Transition:
    """Only while it runs; a second warning takes the place of the first."""
    if request.state is not State.RUNNING:
        return Transition(request=request)
    told = EventDraft(
        kind="idle_warning", data={"stops_at": warning.stops_at, "seen": list(warning.seen)}
    )
    return Transition(request=replace(request, warning=warning), told=(told,))


def withdrawn(request: RequestRecord, why: str) -> Transition:
    """The warning is taken back; there may be none."""
    if request.warning is None:
        return Transition(request=request)
    told = EventDraft(kind="idle_over", data={"why": why})
    return Transition(request=replace(request, warning=None), told=(told,))


def kept(request: RequestRecord, *, now: float) -> Transition:
    """Its owner keeps it, once."""
    if request.state is not State.RUNNING or request.warning is None:
        raise Conflict(
            f"{request.id} is not about to be stopped for being idle.",
            accepted="A session can be kept while it is warned.",
        )
    if request.kept_at is not None:
        raise Conflict(
            f"{request.id} has been kept once already, and that is how often a session can be.",
            accepted="Run a cell, or whatever uses its CPU or its device: work takes the "
            "warning back. Or save and stop it, and start another when you need one.",
        )
    told = EventDraft(kind="idle_kept", data={})
    return Transition(request=replace(request, warning=None, kept_at=now), told=(told,))
