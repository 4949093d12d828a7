"""Store the reports of attempts and spawners, and check the tokens of attempts.

The token of an attempt is generated once; only its hash is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import Conflict, Forbidden, NotFound
from ..groups.membership import account_removed_since
from ..records.events import NewEvent
from ..records.gangs import MemberEnd, split_member_id
from ..records.identity import Viewer
from ..records.leases import Handle
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas import EventsIn, JoinIn, JoinOut, RequestOut, StartedIn
from ..transitions import gang_members, lifecycle
from . import termination
from .gang_outcome import gang_end
from .presenter import RequestPresenter


@dataclass(frozen=True, slots=True)
class AttemptReports:
    """Stores the reports of running attempts."""

    context: Context

    def launch(self, lease_id: str) -> RequestOut:
        """Record that a spawner is about to start the session of this lease."""
        c = self.context
        record = c.store.launch(lease_id, now=c.clock())
        c.backend.release_warm()
        c.notifier.notify()
        return self._shown(record)

    def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        """Record the process of the attempt of this lease."""
        c = self.context
        if split_member_id(lease_id)[1] is not None:
            raise Conflict(
                "The Carrel in this image is too old for jobs of several members.",
                accepted="Build the image again.",
            )
        handle = Handle(pid=body.pid, started_at=body.started_at)
        record = c.store.apply_to_lease(lease_id, lifecycle.start, handle, now=c.clock())
        c.notifier.notify()
        return self._shown(record)

    def join(self, group: str, body: JoinIn) -> JoinOut:
        """Record the runner of a member of a gang, and say whether all have joined.

        Args:
            group: the id of the member.

        Raises:
            StaleEpoch: another process runs as this member, or the attempt ends.
            NotFound: there is no such member.
        """
        c = self.context
        lease_id, rank = split_member_id(group)
        if rank is None:
            raise NotFound(f"{group} is not a member of a job.")
        handle = Handle(pid=body.pid, started_at=body.started_at)
        record = c.store.apply_to_lease(
            lease_id,
            gang_members.join,
            rank,
            handle,
            address=body.address,
            port=body.port,
            now=c.clock(),
        )
        lease = record.lease
        if lease is None or any(member.joined_at is None for member in lease.members):
            return JoinOut(ready=False)
        c.notifier.notify()
        return JoinOut(
            ready=True,
            addresses=[member.address for member in lease.members],
            port=lease.members[0].port,
        )

    def add_events(self, lease_id: str, body: EventsIn) -> int:
        """Store the events of an attempt and return how many of them are new.

        The ``ended`` event ends the request.
        """
        now = self.context.clock()
        events = [
            NewEvent(seq=event.seq, at=min(event.at, now), kind=event.kind, data=event.data)
            for event in body.events
        ]
        return self.store_events(lease_id, events)

    def store_events(self, lease_id: str, events: Sequence[NewEvent]) -> int:
        """Store events of an attempt that were read from its journal; return how many are new.

        Of the members of a gang, events other than their end are stored for member 0 only.
        """
        c = self.context
        lease_id, rank = split_member_id(lease_id)
        if rank is not None:
            self._end_member(lease_id, rank, events)
            events = [event for event in events if event.kind != "ended"] if rank == 0 else []
            if not events:
                return 0
        # Only the service changes the state of a request.
        events = [event for event in events if event.kind != "state"]
        added = c.store.add_events(lease_id, events)
        for event in added:
            c.progress.add(event)
        # Also known events: a service that was killed may not have acted on them.
        for report in events:
            if report.kind == "prefix":
                lease = c.store.lease(lease_id)
                c.prefixes.used(lease.request_id, lease.epoch)
            if report.kind == "compile_cache":
                self._keep_compiled(lease_id)
            if report.kind == "ended":
                request = c.store.request(c.store.lease(lease_id).request_id)
                target, cause = termination.by_runner(report.data, request.notice)
                if termination.is_loss(request, cause):
                    continue  # The controller requeues it once its runner is gone.
                # A preempted attempt reports its stop, but its request is queued again.
                requeued = request.target in (State.HALTED, State.PREEMPTED)
                if not requeued or target is State.SUCCEEDED:
                    c.store.apply(request.id, lifecycle.stop, target, cause, now=c.clock())
        if added:
            c.notifier.notify()
        return len(added)

    def _keep_compiled(self, lease_id: str) -> None:
        """Keep what an attempt has compiled, unless the account of its owner was removed since."""
        c = self.context
        lease = c.store.lease(lease_id)
        record = c.store.request(lease.request_id)
        if account_removed_since(c.store, record.owner, record.submitted_at):
            return
        c.compile_caches.keep(record, lease, c.files.attempt_folder(record.id, lease.epoch))
        # A removal in another process stores its entry, then clears: one of the two sees the other.
        if account_removed_since(c.store, record.owner, record.submitted_at):
            c.compile_caches.clear(record.owner)

    def _end_member(self, lease_id: str, rank: int, events: Sequence[NewEvent]) -> None:
        """Store the end that a member reports, and end the gang if that decides it."""
        for report in events:
            if report.kind == "ended":
                end = MemberEnd(
                    code=str(report.data.get("code")),
                    message=str(report.data.get("message", "")),
                    details=str(report.data.get("details", "")),
                )
                self.end_member(lease_id, rank, end)

    def end_member(self, lease_id: str, rank: int, end: MemberEnd) -> None:
        """Store the end of a member, and end the gang if that decides it."""
        c = self.context
        record = c.store.apply_to_lease(lease_id, gang_members.end_member, rank, end, now=c.clock())
        self.end_gang(record)
        c.notifier.notify()

    def end_gang(self, record: RequestRecord) -> bool:
        """End a gang if the stored ends of its members decide that; return whether they do."""
        if record.gang is None or record.lease is None:
            return False
        decided = gang_end(record.gang, record.lease.members, record.notice)
        requeued = record.target in (State.HALTED, State.PREEMPTED)
        if decided is None or (requeued and decided[0] is not State.SUCCEEDED):
            return False
        self.context.store.apply(record.id, lifecycle.stop, *decided, now=self.context.clock())
        return True

    def lease_of_token(self, token: str) -> str:
        """Return the lease that an attempt's token belongs to. Raises Forbidden."""
        try:
            return self.context.store.lease_of_token(token_hash(token)).id
        except NotFound:
            raise Forbidden("This token belongs to no attempt.") from None

    def _shown(self, record: RequestRecord) -> RequestOut:
        return RequestPresenter.of(self.context).one(record, Viewer(identity=None))


def new_token() -> str:
    """Generate the token of one attempt."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return the hash of an attempt's token, as the store keeps it."""
    return hashlib.sha256(token.encode()).hexdigest()
