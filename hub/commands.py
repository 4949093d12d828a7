"""What people and programs can ask of Carrel: each command checks, stores and answers.

Plain blocking functions, called in a thread pool by the web layer. A command either does the
whole thing or raises a ``CarrelError`` and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import BinaryIO

from pydantic import ValidationError

from . import endings, listing, outputs, views
from .admission import Admission, GroupChoice, check_server_name, choices
from .board import Board
from .errors import CarrelError, Conflict, Forbidden, NotFound, Unavailable
from .intake import Intake
from .listing import Wanted
from .mistakes import invalid_body
from .ports.backend import Backend
from .ports.records import (
    Cause,
    CauseCode,
    Glance,
    Handle,
    NewEvent,
    RequestRecord,
)
from .ports.store import Store
from .ports.world import Clock, Files, Hub, Identity
from .progress import ProgressBook
from .pulse import Pulse
from .repeating import same_job
from .scheduling.lifecycle import State
from .scheduling.model import Group, Wait
from .showing import Showing, pool_of
from .tokens import token_hash
from .views import Viewer
from .wire import (
    EventOut,
    EventsIn,
    FilesOut,
    GroupOut,
    GroupsOut,
    JobIn,
    LedgerOut,
    MeOut,
    OpenSessionIn,
    PoolOut,
    QueueOut,
    RequestOut,
    RequestsOut,
    SessionIn,
    StartedIn,
    StopIn,
    UsageReport,
)

EVENTS_AT_ONCE = 100
"""How many events one look at a history reads; each may hold a picture."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The service's own interface; everything it needs is passed in."""

    store: Store
    hub: Hub
    files: Files
    backend: Backend
    board: Board
    pulse: Pulse
    clock: Clock
    progress: ProgressBook

    # -- asking ---------------------------------------------------------------------------

    def submit_job(self, who: Identity, body: JobIn) -> RequestOut:
        """Queue a notebook or a command; nothing is stored unless all of it is accepted."""
        accepted = self._intake.job(who.name, body)
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
        self.pulse.beat()
        return self._shown(record, self._viewer(who))

    def same_job(self, who: Identity, request_id: str) -> JobIn:
        """What was submitted as this job, ready to be submitted again."""
        return same_job(self._visible(who, request_id), self.files)

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
        record = self._queue_session(who.name, server_name, options)
        self.board.ask(who.name, server_name, record.id, now=self.clock())
        try:
            self.hub.start_server(who.name, server_name, options.model_dump())
        except Unavailable:
            pass  # The request is stored: the loop asks again until the hub is back.
        except CarrelError as refused:
            cause = Cause(code=CauseCode.START_FAILED, message=str(refused))
            self.store.stop(record.id, State.FAILED, cause, now=self.clock())
            self.pulse.beat()
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
        record = live or self._queue_session(body.owner, body.server_name, options)
        return self._shown(record, Viewer(identity=None))

    def cancel(self, who: Identity, request_id: str) -> RequestOut:
        """End a request: a waiting one at once, a running one after its processes are gone."""
        record = self._visible(who, request_id)
        target, cause = endings.asked_by(who.name, record)
        return self._stop(record.id, target, cause, self._viewer(who))

    def stop_session(self, who: Identity, server_name: str) -> None:
        live = self.store.live_session(who.name, check_server_name(server_name))
        if live is None:
            raise NotFound(f"You have no session {server_name or 'default'!r} that runs or waits.")
        self.cancel(who, live.id)

    def end_session(self, request_id: str, body: StopIn) -> RequestOut:
        """The hub's spawner says how a session came to its end."""
        target, cause = endings.told_by_spawner(body)
        return self._stop(request_id, target, cause, Viewer(identity=None))

    # -- looking --------------------------------------------------------------------------

    def me(self, who: Identity) -> MeOut:
        return MeOut(
            name=who.name,
            admin=who.admin,
            groups=[group.name for group in self._groups_now(who)],
            teaches=sorted(self.store.taught_by(who.name)),
        )

    def groups_for(self, who: Identity) -> list[GroupChoice]:
        """Groups that the person may use now; the last known ones while the hub is away."""
        return choices(self._groups_now(who), self.store.groups())

    def request(self, who: Identity | None, request_id: str) -> RequestOut:
        return self._shown(self._visible(who, request_id), self._viewer(who))

    def requests(
        self,
        who: Identity,
        *,
        kind: str | None = None,
        states: frozenset[str] | None = None,
        mine: bool = True,
        limit: int = 200,
    ) -> list[RequestOut]:
        """One's own, newest first; without ``mine`` also what one is entitled to see."""
        wanted = Wanted(kind=kind, states=states, mine=mine, limit=limit)
        return self.find_requests(who, wanted).requests

    def find_requests(self, who: Identity, wanted: Wanted) -> RequestsOut:
        """A page of what was asked for and may be seen."""
        viewer = self._viewer(who)
        page = listing.page(self.store, viewer, wanted)
        return RequestsOut(requests=self._showing.all(page.records, viewer), next=page.next)

    def queue(self, who: Identity | None, limit: int = 200) -> QueueOut:
        return self._showing.queue(self._viewer(who), limit)

    def groups(self, who: Identity) -> GroupsOut:
        return GroupsOut(
            groups=[
                GroupOut(**asdict(choice), teachers=list(self.store.teachers(choice.name)))
                for choice in self.groups_for(who)
            ]
        )

    def events(
        self,
        who: Identity | None,
        request_id: str,
        after: int = 0,
        *,
        limit: int = EVENTS_AT_ONCE,
    ) -> list[EventOut]:
        """The next ones, not all at once: they hold what cells printed."""
        self._visible(who, request_id)
        found = self.store.events(request_id, after=after, limit=limit)
        return [views.event_out(event) for event in found]

    def log(self, who: Identity | None, request_id: str, offset: int = 0) -> bytes:
        return outputs.log(self.files, self._visible(who, request_id), offset)

    def output(self, who: Identity, request_id: str) -> tuple[str, bytes]:
        return outputs.notebook(self.files, self._visible(who, request_id))

    def files_of(self, who: Identity, request_id: str) -> FilesOut:
        """What the newest attempt that left any files put into its output folder."""
        record = self._visible(who, request_id)
        return views.files_out(outputs.files(self.files, record)[1])

    def open_file(self, who: Identity, request_id: str, name: str) -> BinaryIO:
        """One of these, to be read and closed by the caller."""
        return outputs.open_file(self.files, self._visible(who, request_id), name)

    def pool(self, who: Identity | None) -> PoolOut:
        return self._showing.pool(self._viewer(who))

    def glance(self, after: int | None) -> Glance:
        """What those who follow the store look at together, before any of them reads."""
        return self.store.glance(after)

    def pool_at(self, glance: Glance, viewer: Viewer) -> PoolOut:
        """As ``pool``, of that moment."""
        return pool_of(glance.devices, glance.holdings, glance.waiting, viewer)

    def waits(self) -> Mapping[str, Wait]:
        """Everybody's place as the last plan left it, by request; never changed in place."""
        return self.board.waits

    def usage(self, who: Identity) -> UsageReport:
        by_group = self.store.usage(now=self.clock(), owner=who.name)
        return UsageReport(
            device_seconds=sum(usage.total for usage in by_group),
            by_group=[views.usage_out(usage) for usage in by_group],
            ledger=[views.ledger_out(entry) for entry in self.store.ledger(owner=who.name)],
        )

    def ledger(self, who: Identity, request_id: str) -> list[LedgerOut]:
        self._visible(who, request_id)
        return [views.ledger_out(e) for e in self.store.ledger(request_id=request_id)]

    def server_ready(self, owner: str, server_name: str) -> bool:
        """Whether the hub routes to this server."""
        try:
            server = self.hub.user(owner).servers.get(server_name)
        except (Unavailable, NotFound):
            return False
        return server is not None and server.ready

    # -- what attempts and spawners report ------------------------------------------------

    def attach(self, request_id: str) -> None:
        self.board.attach(request_id)

    def detach(self, request_id: str) -> None:
        self.board.detach(request_id)
        self.pulse.beat()

    def launch(self, lease_id: str) -> RequestOut:
        record = self.store.launch(lease_id, now=self.clock())
        self.pulse.beat()
        return self._shown(record, Viewer(identity=None))

    def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        handle = Handle(pid=body.pid, started_at=body.started_at)
        record = self.store.started(lease_id, handle, now=self.clock())
        self.pulse.beat()
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
                target, cause = endings.reported(report.data)
                request_id = self.store.lease(lease_id).request_id
                self.store.stop(request_id, target, cause, now=self.clock())
        if added:
            self.pulse.beat()
        return len(added)

    def lease_of_token(self, token: str) -> str:
        """The lease that an attempt's token speaks for. Raises Forbidden."""
        try:
            return self.store.lease_of_token(token_hash(token)).id
        except NotFound:
            raise Forbidden("This token belongs to no attempt.") from None

    # -- within ---------------------------------------------------------------------------

    @property
    def _admission(self) -> Admission:
        return Admission(self.store, self.hub)

    @property
    def _intake(self) -> Intake:
        return Intake(self._admission, self.backend, self.files)

    @property
    def _showing(self) -> Showing:
        return Showing(store=self.store, board=self.board, progress=self.progress, clock=self.clock)

    def _groups_now(self, who: Identity) -> tuple[Group, ...]:
        """As the hub has them, or as they were at sign-in while it is away."""
        try:
            return self._admission.groups_of(who.name)
        except (Unavailable, NotFound):
            entitled = who.groups | self.store.taught_by(who.name)
            return tuple(group for group in self.store.groups() if group.name in entitled)

    def _viewer(self, who: Identity | None) -> Viewer:
        teaches = self.store.taught_by(who.name) if who else frozenset()
        return Viewer(identity=who, teaches=teaches)

    def _visible(self, who: Identity | None, request_id: str) -> RequestRecord:
        record = self.store.request(request_id)
        if not self._viewer(who).may_see(record.owner, record.group):
            # The same answer as for one that does not exist: ids tell nothing.
            raise NotFound(f"There is no request {request_id}.")
        return record

    def _queue_session(self, owner: str, server_name: str, options: SessionIn) -> RequestRecord:
        made = self._intake.session(owner, server_name, options)
        record = self.store.submit(made, self.clock())
        self.pulse.beat()
        return record

    def _check_wanted(self, body: OpenSessionIn, live: RequestRecord | None) -> None:
        """Refuse the start that the hub was asked for if its request has ended meanwhile.

        Whoever cancels while the hub is asked would otherwise get a new session.
        """
        asked = self.board.asked_for(body.owner, body.server_name, now=self.clock())
        if asked is None or (live is not None and live.state is State.STOPPING):
            return
        self.board.answered(body.owner, body.server_name)
        if live is None:
            record = self.store.request(asked)
            why = record.cause.message if record.cause else f"It is {record.state}."
            raise Conflict(f"The request {asked} of this session has ended: {why}")

    def _stop(self, request_id: str, target: State, cause: Cause, viewer: Viewer) -> RequestOut:
        record = self.store.stop(request_id, target, cause, now=self.clock())
        self.pulse.beat()
        return self._shown(record, viewer)

    def _shown(self, record: RequestRecord, viewer: Viewer) -> RequestOut:
        return self._showing.one(record, viewer)
