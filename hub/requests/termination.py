"""End requests, and determine the state and cause of an end by its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..groups.membership import viewer_of
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity
from ..records.requests import Cause, CauseCode, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import MAY_RUN, State
from ..schemas import RequestOut, StopIn
from ..transitions import lifecycle
from .access import RequestAccess
from .presenter import RequestPresenter

_SESSION_ENDS: Mapping[str, tuple[CauseCode, State, str]] = {
    "stopped": (CauseCode.STOPPED, State.SUCCEEDED, "Stopped by its owner."),
    "cancelled": (CauseCode.CANCELLED, State.CANCELLED, "Cancelled before it started."),
    "start_failed": (CauseCode.START_FAILED, State.FAILED, "The session did not start."),
    "server_died": (CauseCode.SERVER_DIED, State.FAILED, "The session's server died."),
}


@dataclass(frozen=True, slots=True)
class RequestTermination:
    """Ends requests on behalf of users."""

    context: Context

    def cancel(self, who: Identity, request_id: str, reason: str = "") -> RequestOut:
        """End a request: a queued one at once, a running one once its processes have exited.

        Its owner sees the reason. Ending the request of another user is audited.

        Raises:
            NotFound: there is no such request that the caller may see.
        """
        c = self.context
        record, now = RequestAccess(c.store).visible(who, request_id), c.clock()
        target, cause = by_person(who.name, record, reason)
        change = audit_entry(who.name, record, reason, now)
        ended = c.store.apply(record.id, lifecycle.stop, target, cause, now=now, audit=change)
        c.notifier.notify()
        return RequestPresenter.of(c).one(ended, viewer_of(c.store, who))


def by_person(name: str, request: RequestRecord, reason: str = "") -> tuple[State, Cause]:
    """Return the end on request of a user: running sessions are stopped, others cancelled."""
    by = "its owner" if name == request.owner else name
    by_reason = f"{by}: {reason}" if reason else f"{by}."
    if request.kind is Kind.SESSION and request.state in MAY_RUN:
        return State.SUCCEEDED, Cause(code=CauseCode.STOPPED, message=f"Stopped by {by_reason}")
    return State.CANCELLED, Cause(code=CauseCode.CANCELLED, message=f"Cancelled by {by_reason}")


def audit_entry(name: str, request: RequestRecord, reason: str, now: float) -> AuditEntry | None:
    """Return the audit entry; None if the user ends their own request."""
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


def by_spawner(body: StopIn) -> tuple[State, Cause]:
    """Return the end of a session as its spawner reports it."""
    code, target, message = _SESSION_ENDS[body.cause]
    return target, Cause(code=code, message=body.message or message, details=body.details)


def is_loss(request: RequestRecord, cause: Cause) -> bool:
    """Return whether a grading run was killed, so that it keeps its results and runs again."""
    killed = cause.code in (CauseCode.COMMAND_FAILED, CauseCode.OUT_OF_MEMORY)
    return request.kind is Kind.GRADING and killed


def by_runner(data: Mapping[str, object]) -> tuple[State, Cause]:
    """Return the end of a job as its runner classified it."""
    try:
        code = CauseCode(str(data.get("code")))
    except ValueError:
        code = CauseCode.LOST
    targets = {CauseCode.SUCCEEDED: State.SUCCEEDED, CauseCode.CANCELLED: State.CANCELLED}
    cause = Cause(
        code=code, message=str(data.get("message", "")), details=str(data.get("details", ""))
    )
    return targets.get(code, State.FAILED), cause
