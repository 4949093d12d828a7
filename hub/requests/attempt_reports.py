"""Store the reports of attempts and spawners, and check the tokens of attempts.

The token of an attempt is generated once; only its hash is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import Forbidden, NotFound
from ..records.events import NewEvent
from ..records.identity import Viewer
from ..records.leases import Handle
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas import EventsIn, RequestOut, StartedIn
from ..transitions import lifecycle
from . import termination
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
        handle = Handle(pid=body.pid, started_at=body.started_at)
        record = c.store.apply_to_lease(lease_id, lifecycle.start, handle, now=c.clock())
        c.notifier.notify()
        return self._shown(record)

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
        """Store events of an attempt that were read from its journal; return how many are new."""
        c = self.context
        # Only the service changes the state of a request.
        events = [event for event in events if event.kind != "state"]
        added = c.store.add_events(lease_id, events)
        for event in added:
            c.progress.add(event)
        # Also known events: a service that was killed may not have acted on them.
        for report in events:
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
