"""End requests, and determine the state and cause of an end by its origin."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

from ..errors import InvalidInput
from ..groups.membership import viewer_of
from ..messages.units import complete_sentence
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity
from ..records.notices import NoticeKind, StopNotice
from ..records.requests import Cause, CauseCode, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import MAY_RUN, State
from ..scheduling.queue.running_set import notice_end
from ..schemas import RequestOut, StopIn
from ..transitions import lifecycle, preemption
from .access import RequestAccess
from .presenter import RequestPresenter

_SESSION_ENDS: Mapping[str, tuple[CauseCode, State, str]] = {
    "stopped": (CauseCode.STOPPED, State.SUCCEEDED, "Stopped by its owner."),
    "cancelled": (CauseCode.CANCELLED, State.CANCELLED, "Cancelled before it started."),
    "start_failed": (CauseCode.START_FAILED, State.FAILED, "The session did not start."),
    "server_died": (CauseCode.SERVER_DIED, State.FAILED, "The session's server died."),
}
_TARGETS: Mapping[CauseCode, State] = MappingProxyType(
    {
        CauseCode.SUCCEEDED: State.SUCCEEDED,
        CauseCode.CANCELLED: State.CANCELLED,
        CauseCode.HALTED: State.CANCELLED,
    }
)
"""The state of a job by the cause that its runner reports, if it has not failed."""
_log = logging.getLogger(__name__)


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
        record, now = RequestAccess(c.store).changeable(who, request_id), c.clock()
        target, cause = by_person(who.label, record, reason)
        change = audit_entry(who.label, record, reason, now, AuditAction.REQUEST_CANCEL)
        ended = c.store.apply(record.id, lifecycle.stop, target, cause, now=now, audit=change)
        c.notifier.notify()
        return RequestPresenter.of(c).one(ended, viewer_of(c.store, who))

    def halt(self, who: Identity, request_id: str, reason: str = "") -> RequestOut:
        """Let a running job save its work, and stop it; it can then be resumed.

        It is stopped when it has saved its work, at the latest after the grace period. Halting the
        job of another user is audited.

        Raises:
            NotFound: there is no such request that the caller may see.
            InvalidInput: it is not a job.
            Conflict: it does not run.
        """
        c = self.context
        record, now = RequestAccess(c.store).visible(who, request_id), c.clock()
        if record.kind is not Kind.JOB:
            raise InvalidInput(
                f"{record.id} is not a job and cannot be halted.",
                accepted="A running job. Stop a session instead: its files are kept."
                if record.kind is Kind.SESSION
                else "A running job. Cancel a grading run instead.",
            )
        ends = inf if record.lease is None else record.lease.granted_at + record.seconds
        notice = StopNotice(
            kind=NoticeKind.HALT,
            message=f"Halted by {_by(who.name, record, reason)}",
            given_at=now,
            stops_at=notice_end(now, c.grace_seconds, ends),
            group="",
        )
        change = audit_entry(who.name, record, reason, now, AuditAction.REQUEST_HALT)
        halted = c.store.apply(record.id, preemption.announce_halt, notice, now=now, audit=change)
        c.notifier.notify()
        return RequestPresenter.of(c).one(halted, viewer_of(c.store, who))


def by_person(name: str, request: RequestRecord, reason: str = "") -> tuple[State, Cause]:
    """Return the end on request of a user: running sessions are stopped, others cancelled."""
    by_reason = _by(name, request, reason)
    if request.kind is Kind.SESSION and request.state in MAY_RUN:
        return State.SUCCEEDED, Cause(code=CauseCode.STOPPED, message=f"Stopped by {by_reason}")
    return State.CANCELLED, Cause(code=CauseCode.CANCELLED, message=f"Cancelled by {by_reason}")


def _by(name: str, request: RequestRecord, reason: str) -> str:
    """Name the user who ends a request, with the reason."""
    by = "its owner" if name == request.owner else name
    return f"{by}: {reason}" if reason else f"{by}."


def audit_entry(
    name: str, request: RequestRecord, reason: str, now: float, action: AuditAction
) -> AuditEntry | None:
    """Return the audit entry; None if the user ends their own request."""
    if name == request.owner:
        return None
    return AuditEntry(
        at=now,
        who=name,
        action=action,
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


def by_runner(data: Mapping[str, object], notice: StopNotice | None) -> tuple[State, Cause]:
    """Return the end of a job as its runner classified it.

    Args:
        notice: the notice of the attempt, which says who halted it.
    """
    try:
        code = CauseCode(str(data.get("code")))
    except ValueError:
        code = CauseCode.LOST
    message = str(data.get("message", ""))
    if code is CauseCode.HALTED and notice is not None and notice.kind is NoticeKind.HALT:
        message = f"{complete_sentence(notice.message)} {message}"
    details = str(data.get("details", ""))
    cause = lifecycle.storable(Cause(code=code, message=message, details=details))
    if code is CauseCode.LOST and cause.details:
        # A traceback of Carrel's own code: for the administrator, and not on the page of the job.
        _log.error("%s\n%s", cause.message, cause.details)
        cause = replace(cause, details="")
    return _TARGETS.get(code, State.FAILED), cause
