"""Watch the members of gangs: one that disappears ends its gang as a whole.

A member that does not start, or whose processes disappear without a report, is recorded with that
end. If the gang cannot go on without it, the other members are stopped, and the attempt is requeued
or lost as that of any other job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import StaleEpoch
from ..interfaces.backend import AttemptStatus, ProcessState
from ..messages.units import duration
from ..records.gangs import MemberEnd, member_id
from ..records.leases import Handle, LeaseRecord
from ..records.requests import CauseCode, RequestRecord
from ..requests.attempt_reports import AttemptReports
from ..requests.gang_outcome import lost_end, missing_member
from ..runtime.context import Context
from ..scheduling.model.states import State
from .jobs import JobController
from .loop_memory import Pairs

JOIN_SECONDS = 600.0
"""How long a member of a gang may take to start, without a wait in the queue of a cluster."""
_RUNS = frozenset({State.STARTING, State.RUNNING})


@dataclass(frozen=True, slots=True)
class GangController:
    """Called by the reconciler with the status of every member."""

    context: Context

    def handles(
        self, lease: LeaseRecord, request: RequestRecord, known: Mapping[str, Handle]
    ) -> dict[str, Handle | None]:
        """Return the handles of the members that should live, by member id.

        Args:
            known: handles from the backend; a runner that was forked a moment ago is found only by
                its handle.
        """
        if request.state not in _RUNS:
            return {}
        living = (member for member in lease.members if member.end is None)
        by_id = {member_id(lease.id, member.rank): member for member in living}
        return {name: lease.handle_of(each) or known.get(name) for name, each in by_id.items()}

    def reconcile(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        statuses: Mapping[str, AttemptStatus],
        now: float,
    ) -> bool:
        """Store the ends of members that are gone or did not start; return whether any is.

        A service that was killed may have stored an end, and not what follows from it.
        """
        if missing_member(request) is not None:
            return False  # The others are being stopped.
        if request.state in _RUNS and AttemptReports(self.context).end_gang(request):
            return True
        changed = False
        for member in lease.members:
            status = statuses.get(member_id(lease.id, member.rank))
            if status is None:
                continue
            end = None
            if status.life is ProcessState.DEAD:
                end = self._end(lease, request, member.rank, status)
            elif member.joined_at is None and _is_late(lease, status, now):
                end = MemberEnd(
                    code=str(CauseCode.START_FAILED),
                    message=f"it did not start within {duration(JOIN_SECONDS)}",
                )
            if end is None:
                continue
            try:
                AttemptReports(self.context).end_member(lease.id, member.rank, end)
            except StaleEpoch:
                return True
            changed = True
        return changed

    def incomplete(self, pairs: Pairs) -> Pairs:
        """Return the attempts of gangs that lack a member and are to be stopped."""
        return [
            (lease, request)
            for lease, request in pairs
            if request.state in _RUNS and missing_member(request) is not None
        ]

    def _end(
        self, lease: LeaseRecord, request: RequestRecord, rank: int, status: AttemptStatus
    ) -> MemberEnd:
        """Return the end of a member without processes; its journal has precedence."""
        jobs = JobController(self.context)
        jobs.collect_member(lease, request, rank)
        tail = jobs.log_tail(request, lease, rank)
        return lost_end(status.cause, status.exit_status, tail, status.lost)


def _is_late(lease: LeaseRecord, status: AttemptStatus, now: float) -> bool:
    """Whether a member that has not joined should have done so by now."""
    if status.waiting or lease.launched_at is None:
        return False
    return now - max(lease.launched_at, status.started_at or 0.0) > JOIN_SECONDS
