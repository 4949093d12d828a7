"""Hold granted devices for owners of sessions: keep the place, open a CPU desk meanwhile, claim.

A session that must be claimed needs no spawner while it is queued. Once granted, its lease is held
for the claim window, after which the scheduling loop cancels it; the session starts only when its
owner claims it. Each step is one transaction. The loop repeats calls to JupyterHub that got no
answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from ..admission.policy import check_server_name
from ..admission.request_factory import RequestFactory
from ..errors import Conflict, NotFound, Unavailable
from ..records.identity import Identity
from ..records.requests import NewRequest, RequestRecord
from ..requests.access import RequestAccess
from ..requests.queries import RequestQueries
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas import RequestOut, SessionIn
from ..transitions import owner_changes
from .lifecycle import SessionLifecycle
from .server_start import start_server

CPU_DESK = ""
"""The server name of the CPU desk: that of JupyterHub's default server."""
_NAME = "gpu"


@dataclass(frozen=True, slots=True)
class HeldSessions:
    """Operations of owners on sessions that are held for them."""

    context: Context

    def start(self, who: Identity, server_name: str, options: SessionIn) -> RequestOut:
        """Queue a session that will be held; without a server name, choose an unused one."""
        name = check_server_name(server_name) or self._free_name(who.name)
        live = self.context.store.live_session(who.name, name)
        if live is not None:
            raise Conflict(
                f"Your session {name} is {live.state} already.",
                accepted="Stop it first, or choose another name.",
            )
        wanted = options.model_copy(update={"claim": True})
        record = SessionLifecycle(self.context).queue(who.name, name, wanted)
        return RequestQueries(self.context).request(who, record.id)

    def keep_place(self, who: Identity, request_id: str) -> RequestOut:
        """Open a CPU desk now, while the queued session keeps its place until it can be claimed.

        If the session has the server name of the desk, it gets another one. Idempotent: a kept
        place is not changed, and a desk that has ended is opened again.
        """
        c = self.context
        before = RequestAccess(c.store).owned(who, request_id)
        name = before.server_name
        if name == CPU_DESK:
            name = self._free_name(who.name)
        c.store.keep_place(before.id, name, now=c.clock(), desk=self._desk(before))
        c.notifier.notify()
        if not before.unclaimed:
            self._cancel_start(before)
        desk = c.store.live_session(who.name, CPU_DESK)
        if desk is not None and desk.state in (State.QUEUED, State.GRANTED) and not desk.unclaimed:
            start_server(c, desk)
        return RequestQueries(c).request(who, request_id)

    def claim(self, who: Identity, request_id: str) -> RequestOut:
        """Start the session whose device is held. Idempotent."""
        c = self.context
        claimed = c.store.apply(
            RequestAccess(c.store).owned(who, request_id).id, owner_changes.claim, now=c.clock()
        )
        c.notifier.notify()
        if claimed.state is State.GRANTED:
            start_server(c, claimed)
        return RequestQueries(c).request(who, request_id)

    # -- helpers --------------------------------------------------------------------------

    def _desk(self, before: RequestRecord) -> NewRequest | None:
        """Return the request for a CPU desk with the same time limit; None if one is live."""
        c = self.context
        live = c.store.live_session(before.owner, CPU_DESK)
        if live is not None and live.id != before.id:
            return None
        options = SessionIn(devices=0, hours=before.seconds / 3600, group=before.group)
        return RequestFactory.of(c).session(before.owner, CPU_DESK, options)

    def _free_name(self, owner: str) -> str:
        """Return the first of ``gpu``, ``gpu-2``, … that no session of the owner has."""
        c = self.context
        at_hub = c.hub.user(owner).servers
        free = (
            name
            for name in _names()
            if name not in at_hub and c.store.live_session(owner, name) is None
        )
        return next(free)

    def _cancel_start(self, before: RequestRecord) -> None:
        """Cancel the pending start at JupyterHub, so that the server name becomes free."""
        # If JupyterHub does not answer, the spawner stops once it sees that the place is kept.
        with suppress(Unavailable, NotFound):
            self.context.hub.stop_server(before.owner, before.server_name)


def _names() -> Iterator[str]:
    yield _NAME
    for number in count(2):
        yield f"{_NAME}-{number}"
