"""What people and programs can ask of Carrel: each command checks, stores and answers.

Plain blocking functions, called in a thread pool by the web layer. A command either does the
whole thing or raises a ``CarrelError`` and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from ..admission.policy import check_server_name
from ..admission.request_factory import RequestFactory
from ..errors import CarrelError, Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from ..interfaces.backend import Backend
from ..inventory.images import ImageCatalogue
from ..messages.validation import invalid_body
from ..records.events import NewEvent
from ..records.identity import Identity, Viewer
from ..records.leases import Handle
from ..records.requests import Cause, CauseCode, RequestRecord
from ..requests import termination
from ..requests.attempt_reports import token_hash
from ..requests.explanation import WaitExplanations
from ..requests.queries import RequestQueries
from ..scheduling.model.states import State
from ..schemas import EventsIn, JobIn, OpenSessionIn, RequestOut, SessionIn, StartedIn, StopIn
from ..schemas.explanation import WhyOut
from ..schemas.images import ImagesOut
from .kernel_reports import KernelReports
from .notifier import ChangeNotifier
from .pending_server_starts import PendingServerStarts
from .snapshots import SnapshotReader
from .spawner_listeners import SpawnerListeners


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(RequestQueries):
    """The service's own interface: what may be asked of it, besides what it shows."""

    backend: Backend
    notifier: ChangeNotifier
    spawner_listeners: SpawnerListeners = field(default_factory=SpawnerListeners)
    pending_server_starts: PendingServerStarts = field(default_factory=PendingServerStarts)
    kernel_reports: KernelReports = field(default_factory=KernelReports)

    # -- asking ---------------------------------------------------------------------------

    def submit_job(self, who: Identity, body: JobIn) -> RequestOut:
        """Queue a notebook or a command; nothing is stored unless all of it is accepted."""
        accepted = self.intake.job(who, body)
        made = accepted.request
        stored = False
        try:
            if accepted.notebook is not None:
                self.files.put_input(made.id, accepted.notebook)
            if accepted.archive is not None:
                self.files.put_archive(made.id, accepted.archive)
            record = self.store.submit(made, self.clock())
            stored = record.id == made.id
        finally:
            if not stored:
                self.files.discard(made.id)
        self.notifier.notify()
        return self._shown(record, self._viewer(who))

    def start_session(self, who: Identity, server_name: str, options: SessionIn) -> RequestOut:
        """Queue a session and ask the hub to bring its server up when it is granted.

        A hub that is away loses nothing: the loop asks again.
        """
        check_server_name(server_name)
        live = self.store.live_session(who.name, server_name)
        if live is not None:
            raise Conflict(
                f"Your session {server_name or 'default'} is {live.state} already.",
                accepted="Open it from the desk, stop it first, or choose another name.",
            )
        record = self.queue_session(who.name, server_name, options)
        self.pending_server_starts.note(who.name, server_name, record.id, now=self.clock())
        try:
            self.hub.start_server(who.name, server_name, options.model_dump())
        except Unavailable:
            pass  # The request is stored: the loop asks again until the hub is back.
        except CarrelError as refused:
            cause = Cause(code=CauseCode.START_FAILED, message=str(refused))
            self.store.stop(record.id, State.FAILED, cause, now=self.clock())
            self.notifier.notify()
            raise
        return self._shown(record, self._viewer(who))

    def open_session(self, body: OpenSessionIn) -> RequestOut:
        """The live request of this server, or a new one: called by the hub's spawner."""
        check_server_name(body.server_name)
        try:
            options = SessionIn.model_validate(body.options)
        except ValidationError as error:
            raise invalid_body(error, SessionIn) from error
        live = self.store.live_session(body.owner, body.server_name)
        self._check_wanted(body, live)
        if options.claim:
            raise InvalidInput(
                "A server that JupyterHub starts does not wait to be claimed.",
                accepted="Leave 'claim' out, or ask the Carrel service for the session.",
                field="claim",
            )
        if live is not None and live.unclaimed and live.state is State.GRANTED:
            # Its owner starts the server at the hub itself: that is coming for the device.
            live = self.store.claim(live.id, now=self.clock())
        record = live or self.queue_session(body.owner, body.server_name, options)
        return self._shown(record, Viewer(identity=None))

    def cancel(self, who: Identity, request_id: str, reason: str = "") -> RequestOut:
        """End a request: a waiting one at once, a running one after its processes are gone.

        Its owner sees the reason. Somebody else's request gets a line in the audit list.
        """
        record, now = self.visible(who, request_id), self.clock()
        target, cause = termination.asked_by(who.name, record, reason)
        change = termination.audited(who.name, record, reason, now)
        ended = self.store.stop(record.id, target, cause, now=now, change=change)
        self.notifier.notify()
        return self._shown(ended, self._viewer(who))

    def stop_session(self, who: Identity, server_name: str) -> None:
        live = self.store.live_session(who.name, check_server_name(server_name))
        if live is None:
            raise NotFound(f"You have no session {server_name or 'default'!r} that runs or waits.")
        self.cancel(who, live.id)

    def end_session(self, request_id: str, body: StopIn) -> RequestOut:
        """The hub's spawner says how a session came to its end."""
        record = self.store.request(request_id)
        if body.cause == "cancelled" and record.unclaimed:
            # Only the wait at the hub was called off: the place is kept for its owner.
            return self._shown(record, Viewer(identity=None))
        target, cause = termination.told_by_spawner(body)
        return self._stop(request_id, target, cause, Viewer(identity=None))

    # -- what attempts and spawners report ------------------------------------------------

    def attach(self, request_id: str) -> None:
        self.spawner_listeners.attach(request_id)

    def detach(self, request_id: str) -> None:
        self.spawner_listeners.detach(request_id)
        self.notifier.notify()

    def launch(self, lease_id: str) -> RequestOut:
        record = self.store.launch(lease_id, now=self.clock())
        self.backend.release_warm()
        self.notifier.notify()
        return self._shown(record, Viewer(identity=None))

    def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        handle = Handle(pid=body.pid, started_at=body.started_at)
        record = self.store.started(lease_id, handle, now=self.clock())
        self.notifier.notify()
        return self._shown(record, Viewer(identity=None))

    def add_events(self, lease_id: str, body: EventsIn) -> int:
        """Store what an attempt reports; its ``ended`` event ends the request."""
        now = self.clock()
        events = [
            NewEvent(seq=event.seq, at=min(event.at, now), kind=event.kind, data=event.data)
            for event in body.events
        ]
        return self.take_events(lease_id, events)

    def take_events(self, lease_id: str, events: Sequence[NewEvent]) -> int:
        """The same for events that were read from an attempt's journal."""
        # Both come from the job's own side: its moves in the lifecycle are not its to tell.
        events = [event for event in events if event.kind != "state"]
        added = self.store.add_events(lease_id, events)
        for event in added:
            self.progress.add(event)
        # Also of what is stored already: a service that was killed may have got no further.
        for report in events:
            if report.kind == "ended":
                target, cause = termination.reported(report.data)
                request = self.store.request(self.store.lease(lease_id).request_id)
                if termination.is_loss(request, cause):
                    continue  # Once its runner is gone, it is tried again as what was lost.
                # What is to come back dies of being stopped, and says so; that is no end.
                comes_back = request.target in (State.HALTED, State.PREEMPTED)
                if not comes_back or target is State.SUCCEEDED:
                    self.store.stop(request.id, target, cause, now=self.clock())
        if added:
            self.notifier.notify()
        return len(added)

    def lease_of_token(self, token: str) -> str:
        """The lease that an attempt's token speaks for. Raises Forbidden."""
        try:
            return self.store.lease_of_token(token_hash(token)).id
        except NotFound:
            raise Forbidden("This token belongs to no attempt.") from None

    @property
    def intake(self) -> RequestFactory:
        """What makes a request of what was asked for."""
        return RequestFactory(self.admission, self.backend, self.files, self.catalogue)

    @property
    def catalogue(self) -> ImageCatalogue:
        """The images that there are."""
        return ImageCatalogue(self.backend, self.store, self.clock)

    @property
    def placing(self) -> SnapshotReader:
        """What reads the snapshot that decisions are made from."""
        return SnapshotReader(self.store, self.backend, self.grace_seconds)

    def images(self, who: Identity, *, groups_of: Collection[str] | None = None) -> ImagesOut:
        """The images to choose from, and what is pinned.

        ``groups_of``: their groups, where they are known already; else the hub is asked.
        """
        return self.catalogue.shown(who, self._names(who, groups_of))

    def why(self, who: Identity | None, request_id: str) -> WhyOut:
        """Why it waits, behind whom, and what would start it sooner."""
        explaining = WaitExplanations(
            placing=self.placing,
            plan_cache=self.plan_cache,
            admission=self.admission,
            clock=self.clock,
        )
        return explaining.why(self.visible(who, request_id), self._viewer(who))

    def queue_session(self, owner: str, server_name: str, options: SessionIn) -> RequestRecord:
        """Let it in and store it; the same live session is not looked for here."""
        made = self.intake.session(owner, server_name, options)
        record = self.store.submit(made, self.clock())
        self.notifier.notify()
        return record

    # -- within ---------------------------------------------------------------------------

    def _check_wanted(self, body: OpenSessionIn, live: RequestRecord | None) -> None:
        """Refuse the start that the hub was asked for if its request has ended meanwhile.

        Whoever cancels while the hub is asked would otherwise get a new session.
        """
        asked = self.pending_server_starts.request_of(
            body.owner, body.server_name, now=self.clock()
        )
        if asked is None or (live is not None and live.state is State.STOPPING):
            return
        self.pending_server_starts.clear(body.owner, body.server_name)
        if live is None:
            record = self.store.request(asked)
            if record.unclaimed:
                raise Conflict(f"The place of {asked} is kept; it does not start by itself.")
            why = record.cause.message if record.cause else f"It is {record.state}."
            raise Conflict(f"The request {asked} of this session has ended: {why}")

    def _stop(self, request_id: str, target: State, cause: Cause, viewer: Viewer) -> RequestOut:
        record = self.store.stop(request_id, target, cause, now=self.clock())
        self.notifier.notify()
        return self._shown(record, viewer)
