"""How requests come to their end, as values: what was reported, what was asked, what was seen."""

from __future__ import annotations

from collections.abc import Mapping

from ..records.audit import AuditAction, AuditEntry
from ..records.requests import Cause, CauseCode, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import MAY_RUN, State
from ..schemas import StopIn

_SESSION_ENDS: Mapping[str, tuple[CauseCode, State, str]] = {
    "stopped": (CauseCode.STOPPED, State.SUCCEEDED, "Stopped by its owner."),
    "cancelled": (CauseCode.CANCELLED, State.CANCELLED, "Cancelled before it started."),
    "start_failed": (CauseCode.START_FAILED, State.FAILED, "The session did not start."),
    "server_died": (CauseCode.SERVER_DIED, State.FAILED, "The session's server died."),
}


def asked_by(name: str, request: RequestRecord, reason: str = "") -> tuple[State, Cause]:
    """Somebody ends a request: a running session is stopped, everything else cancelled."""
    by = "its owner" if name == request.owner else name
    said = f"{by}: {reason}" if reason else f"{by}."
    if request.kind is Kind.SESSION and request.state in MAY_RUN:
        return State.SUCCEEDED, Cause(code=CauseCode.STOPPED, message=f"Stopped by {said}")
    return State.CANCELLED, Cause(code=CauseCode.CANCELLED, message=f"Cancelled by {said}")


def audited(name: str, request: RequestRecord, reason: str, now: float) -> AuditEntry | None:
    """The line in the audit list; none for what is somebody's own."""
    if name == request.owner:
        return None
    return AuditEntry(
        at=now,
        who=name,
        action=AuditAction.REQUEST_CANCEL,
        target=request.id,
        why=reason,
        before={"owner": request.owner, "group": request.group, "state": request.state.value},
    )


def told_by_spawner(body: StopIn) -> tuple[State, Cause]:
    """The hub's spawner says how a session came to its end."""
    code, target, message = _SESSION_ENDS[body.cause]
    return target, Cause(code=code, message=body.message or message, details=body.details)


def is_loss(request: RequestRecord, cause: Cause) -> bool:
    """Whether the service's own work was torn off: what it has done is kept, and it goes on."""
    torn = cause.code in (CauseCode.COMMAND_FAILED, CauseCode.OUT_OF_MEMORY)
    return request.kind is Kind.GRADING and torn


def reported(data: Mapping[str, object]) -> tuple[State, Cause]:
    """The end of a job as its runner classified it."""
    try:
        code = CauseCode(str(data.get("code")))
    except ValueError:
        code = CauseCode.LOST
    targets = {CauseCode.SUCCEEDED: State.SUCCEEDED, CauseCode.CANCELLED: State.CANCELLED}
    cause = Cause(
        code=code, message=str(data.get("message", "")), details=str(data.get("details", ""))
    )
    return targets.get(code, State.FAILED), cause
