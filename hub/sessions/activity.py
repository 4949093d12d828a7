"""Store the kernel activity that sessions report, and return the notices for their users."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Conflict, Forbidden, NotFound
from ..records.identity import Identity
from ..records.requests import RequestFilter, RequestRecord
from ..requests.access import RequestAccess
from ..requests.notices import held_out, shown_in_session, warning_out
from ..requests.presenter import claim_by, dated_drains, drain_of
from ..requests.queries import RequestQueries
from ..runtime.context import Context
from ..scheduling.model import idleness
from ..scheduling.model.idleness import ActivityLevel, KernelReport
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..schemas import HeldOut, KernelsIn, RequestOut, WatchOut
from ..transitions import idle_warnings

SLOW_REPORT_SECONDS = 30.0
"""Seconds between the reports of a session to which no idle rule applies.

It learns within this time of a new request of its owner whose device will be held.
"""
_WARNED_REPORT_SECONDS = 5.0
_WAITS = frozenset({State.QUEUED, State.GRANTED})


@dataclass(frozen=True, slots=True)
class SessionActivity:
    """Handles reports of running sessions and the owner's answer to an idle warning.

    Attributes:
        countdown: seconds between an idle warning and the end of the session.
    """

    context: Context
    countdown: float

    def keep(self, who: Identity, request_id: str) -> RequestOut:
        """Keep an idle session, once; its idle time starts again.

        Raises:
            Conflict: the session has no warning, or was kept before.
            Forbidden: the caller is not its owner.
        """
        record = self._own(who, request_id, "keep")
        self.context.store.apply(record.id, idle_warnings.keep, now=self.context.clock())
        self.context.notifier.notify()
        return RequestQueries(self.context).request(who, record.id)

    def report(self, who: Identity, request_id: str, body: KernelsIn) -> WatchOut:
        """Store the kernel activity of a session; return its state and the notices for its user.

        Raises:
            Conflict: the request is not a running session.
            Forbidden: the caller is not its owner.
        """
        c, now = self.context, self.context.clock()
        record = self._own(who, request_id, "report for")
        if record.kind is not Kind.SESSION or record.state is not State.RUNNING:
            raise Conflict(f"{record.id} is not a running session.")
        cell_at = None if body.cell_seconds_ago is None else now - body.cell_seconds_ago
        kernels = KernelReport(
            count=body.count,
            running=body.running,
            cell_at=cell_at,
            cpu_seconds=body.cpu_seconds,
            devices=ActivityLevel(body.devices) if body.devices else None,
        )
        c.kernel_reports.put(record.id, kernels, now=now)
        with c.store.together():
            drain = drain_of(record, dated_drains(c.store.marks()))
            unclaimed = self._unclaimed(who)
        warning, held = warning_out(record, drain, now=now), self._held(unclaimed)
        # A session without devices is not preempted: nothing about it is urgent.
        followed = [*([record] if record.devices else ()), *unclaimed]
        return WatchOut(
            state=record.state.value,
            warning=warning,
            held=held,
            shown=shown_in_session(warning, held),
            again_seconds=self._next_report(record),
            follow=[request.id for request in followed],
        )

    def _unclaimed(self, who: Identity) -> list[RequestRecord]:
        """Return the owner's sessions whose devices are held, or will be."""
        wanted = RequestFilter(owner=who.name, kind=Kind.SESSION, states=_WAITS)
        found = self.context.store.requests(wanted)
        return [request for request in found if request.unclaimed]

    def _held(self, unclaimed: list[RequestRecord]) -> HeldOut | None:
        """Return the held device that is released first."""
        window = self.context.claim_seconds
        found = [held_out(r, at) for r in unclaimed if (at := claim_by(r, window)) is not None]
        return min(found, key=lambda held: held.claim_by, default=None)

    def _next_report(self, record: RequestRecord) -> float:
        """Return the seconds until the next report of the session."""
        try:
            idle_seconds = self.context.store.group(record.group).idle_seconds
        except NotFound:
            idle_seconds = 0
        if not record.devices or idle_seconds <= 0:
            return SLOW_REPORT_SECONDS
        longest = idleness.MAX_REPORT_SECONDS if record.warning is None else _WARNED_REPORT_SECONDS
        return min(longest, idleness.sample_interval(idle_seconds, self.countdown) / 2)

    def _own(self, who: Identity, request_id: str, verb: str) -> RequestRecord:
        record = RequestAccess(self.context.store).visible(who, request_id)
        if record.owner != who.name:
            raise Forbidden(f"Only its owner can {verb} {record.id}.")
        return record
