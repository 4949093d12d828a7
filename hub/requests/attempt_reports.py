"""Take in what attempts and spawners report, and check the tokens with which they do.

The token of an attempt is made once; the store keeps its hash only.
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
        """A spawner is about to start the session of this lease."""
        c = self.context
        record = c.store.launch(lease_id, now=c.clock())
        c.backend.release_warm()
        c.notifier.notify()
        return self._shown(record)

    def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        """The attempt of this lease has a process."""
        c = self.context
        handle = Handle(pid=body.pid, started_at=body.started_at)
        record = c.store.apply_to_lease(lease_id, lifecycle.start, handle, now=c.clock())
        c.notifier.notify()
        return self._shown(record)

    def add_events(self, lease_id: str, body: EventsIn) -> int:
        """Store what an attempt reports; return how many of the events are new.

        The ``ended`` event ends the request.
        """
        now = self.context.clock()
        events = [
            NewEvent(seq=event.seq, at=min(event.at, now), kind=event.kind, data=event.data)
            for event in body.events
        ]
        return self.store_events(lease_id, events)

    def store_events(self, lease_id: str, events: Sequence[NewEvent]) -> int:
        """Do the same with events that were read from the journal of an attempt."""
        c = self.context
        # A job cannot report changes of its own state: those are the service's.
        events = [event for event in events if event.kind != "state"]
        added = c.store.add_events(lease_id, events)
        for event in added:
            c.progress.add(event)
        # Known events too: a service that was killed may not have acted on them.
        for report in events:
            if report.kind == "ended":
                target, cause = termination.by_runner(report.data)
                request = c.store.request(c.store.lease(lease_id).request_id)
                if termination.is_loss(request, cause):
                    continue  # It is lost, and runs again once its runner is gone.
                # A preempted attempt reports that it was stopped; its request has not ended.
                comes_back = request.target in (State.HALTED, State.PREEMPTED)
                if not comes_back or target is State.SUCCEEDED:
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
    """Make the token of one attempt."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return what the store keeps of an attempt's token."""
    return hashlib.sha256(token.encode()).hexdigest()
