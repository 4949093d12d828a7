"""Start, open, stop and end sessions: for their owners and for JupyterHub's spawners."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from ..admission.policy import check_server_name
from ..admission.request_factory import RequestFactory
from ..errors import Conflict, InvalidInput, NotFound, Unavailable
from ..groups.membership import viewer_of
from ..messages.validation import invalid_body
from ..records.identity import Identity, Viewer
from ..records.requests import RequestRecord
from ..requests import termination
from ..requests.presenter import RequestPresenter
from ..requests.termination import RequestTermination
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas import OpenSessionIn, RequestOut, SessionIn, StopIn
from ..secrets.vault import SecretVault
from ..transitions import lifecycle, owner_changes
from .server_start import start_server


@dataclass(frozen=True, slots=True)
class SessionLifecycle:
    """Queues, opens, stops and ends sessions."""

    context: Context

    def start(self, who: Identity, server_name: str, options: SessionIn) -> RequestOut:
        """Queue a session and ask JupyterHub to start its server once it is granted.

        Raises:
            Conflict: the caller has a live session of this name.
            Refused: the session is not admitted; the error says what would be.
        """
        c = self.context
        check_server_name(server_name)
        live = c.store.live_session(who.name, server_name)
        if live is not None:
            raise Conflict(
                f"Your session {server_name or 'default'} is {live.state} already.",
                accepted="Open it from the desk, stop it first, or choose another name.",
            )
        record = self.queue(who.name, server_name, options)
        start_server(c, record, options)
        return RequestPresenter.of(c).one(record, viewer_of(c.store, who))

    def open(self, body: OpenSessionIn) -> RequestOut:
        """Return the live session of a server, or queue a new one; called by its spawner."""
        c = self.context
        check_server_name(body.server_name)
        try:
            options = SessionIn.model_validate(body.options)
        except ValidationError as error:
            raise invalid_body(error, SessionIn) from error
        live = c.store.live_session(body.owner, body.server_name)
        self._check_not_ended(body, live)
        if options.claim:
            raise InvalidInput(
                "A session that JupyterHub starts cannot wait to be claimed.",
                accepted="Omit 'claim', or request the session from the Carrel service.",
                field="claim",
            )
        if live is not None and live.unclaimed and live.state is State.GRANTED:
            # The owner started the server on JupyterHub's own pages, which claims the device.
            live = c.store.apply(live.id, owner_changes.claim, now=c.clock())
        record = live or self.queue(body.owner, body.server_name, options)
        return self._shown(record)

    def queue(self, owner: str, server_name: str, options: SessionIn) -> RequestRecord:
        """Admit and store a session; the caller has checked that no live one has this name."""
        c = self.context
        request = RequestFactory.of(c).session(owner, server_name, options)
        used = SecretVault(c).resolved(owner, request.group, options.secrets)
        record = c.store.submit(request, c.clock(), secrets=used)
        c.notifier.notify()
        return record

    def stop(self, who: Identity, server_name: str) -> None:
        """End the caller's live session of this name. Raises NotFound."""
        live = self.context.store.live_session(who.name, check_server_name(server_name))
        if live is None:
            raise NotFound(f"You have no running or queued session {server_name or 'default'!r}.")
        RequestTermination(self.context).cancel(who, live.id)

    def end(self, request_id: str, body: StopIn) -> RequestOut:
        """End a session as its spawner reports it."""
        c = self.context
        record = c.store.request(request_id)
        if body.cause == "cancelled" and record.unclaimed:
            # Only JupyterHub has stopped waiting; the place in the queue is kept.
            return self._shown(record)
        target, cause = termination.by_spawner(body)
        ended = c.store.apply(request_id, lifecycle.stop, target, cause, now=c.clock())
        c.notifier.notify()
        return self._shown(ended)

    def ready(self, owner: str, server_name: str) -> bool:
        """Return whether JupyterHub routes requests to this server."""
        try:
            server = self.context.hub.user(owner, for_page=True).servers.get(server_name)
        except (Unavailable, NotFound):
            return False
        return server is not None and server.ready

    def _check_not_ended(self, body: OpenSessionIn, live: RequestRecord | None) -> None:
        """Refuse a start that Carrel requested if the request has ended meanwhile.

        Otherwise, an owner who cancels during the start would get a new session.
        """
        c = self.context
        pending = c.pending_server_starts.request_of(body.owner, body.server_name, now=c.clock())
        if pending is None or (live is not None and live.state is State.STOPPING):
            return
        c.pending_server_starts.clear(body.owner, body.server_name)
        if live is None:
            record = c.store.request(pending)
            if record.unclaimed:
                raise Conflict(
                    f"The place of {pending} is kept; it starts once its owner claims it."
                )
            why = record.cause.message if record.cause else f"It is {record.state}."
            raise Conflict(f"The request {pending} of this session has ended: {why}")

    def _shown(self, record: RequestRecord) -> RequestOut:
        return RequestPresenter.of(self.context).one(record, Viewer(identity=None))
