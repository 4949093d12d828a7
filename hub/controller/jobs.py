"""What the loop does to one request: start, end, lose, give back, and talk to the hub about it."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..errors import BackendFailed, NotFound, StaleEpoch, Unavailable
from ..interfaces.backend import LaunchOrder
from ..records.requests import (
    Cause,
    CauseCode,
    Handle,
    Json,
    LeaseRecord,
    RequestFilter,
    RequestRecord,
)
from ..requests.attempt_reports import new_token, token_hash
from ..runtime.context import Commands
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State

log = logging.getLogger(__name__)

LAUNCH_GRACE = 90.0
"""Seconds that an attended session may take between ``starting`` and its first process."""
UNATTENDED_GRACE = 3.0
"""Seconds that a session may be without a spawner at the hub before the hub is asked for one."""
TELLING_GRACE = 3.0
"""Seconds after the last sign of life in which a spawner says why what it brings up died."""
MAX_ATTEMPTS = 3
"""Starts of one request that may come to nothing before it fails."""
SETTLED = 5.0
"""Seconds after which a running session must be known to the hub."""
ENGINE_AWAY = "engine_away"
"""In the history of a request whose start was not answered."""
_LOG_TAIL = 4000


@dataclass(frozen=True, slots=True)
class JobActions:
    """Jobs: the service itself runs them, through the backend."""

    commands: Commands

    def start(self, lease: LeaseRecord, request: RequestRecord) -> Handle | None:
        """Write the intent, then start; None where the engine refused."""
        c = self.commands
        if request.job is None:
            raise BackendFailed(f"{request.id} is no job.")
        token = new_token()
        now = c.clock()
        c.store.launch(lease.id, now=now, token_hash=token_hash(token))
        devices = {device.id: device for device in c.store.devices()}
        folder = c.files.attempt_folder(request.id, lease.epoch)
        # Nothing that a person can write into leads the service's own work.
        home = folder if request.kind is Kind.GRADING else c.files.home(request.owner)
        order = LaunchOrder(
            lease_id=lease.id,
            request_id=request.id,
            epoch=lease.epoch,
            owner=request.owner,
            devices=tuple(devices[name] for name in lease.devices),
            job=request.job,
            seconds=request.seconds,
            token=token,
            folder=folder,
            input_path=c.files.input_path(request.id),
            home=home,
            archive_path=c.files.archive_path(request.id) if request.job.archive else None,
            image=request.image,
            node=lease.node,
            group=request.group,
        )
        try:
            return c.backend.start(order)
        except BackendFailed as error:
            log.warning("%s: %s", lease.id, error)
            give_back_or_fail(c, lease, request, str(error))
            return None
        except Unavailable as error:
            # Whether it started is not known. Its engine will say, and it is not to blame.
            log.warning("%s: %s", lease.id, error)
            c.store.tell(request.id, ENGINE_AWAY, {"why": str(error)}, now=now)
            return None

    def not_started(
        self, lease: LeaseRecord, request: RequestRecord, known: Cause | None = None
    ) -> None:
        """``starting``, and no process: killed before the fork, or gone before its claim.

        ``known``: why, where the engine knows it.
        """
        tail = self.commands.files.log(request.id, lease.epoch)[-_LOG_TAIL:]
        give_back_or_fail(
            self.commands,
            lease,
            request,
            known.message if known else "The job's runner ended before it began.",
            tail.decode(errors="replace"),
        )

    def collect(self, lease: LeaseRecord, request: RequestRecord) -> float:
        """Take in what the attempt wrote down and could not deliver; its last sign of life."""
        folder = self.commands.files.attempt_folder(request.id, lease.epoch)
        events = self.commands.backend.journal(folder)
        if events:
            self.commands.take_events(lease.id, events)
        return max((event.at for event in events), default=0.0)

    def died(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        seen: float,
        known: Cause | None = None,
    ) -> None:
        """``running``, and no process is left. ``known``: why, where the engine knows it."""
        c = self.commands
        last = self.collect(lease, request)
        now = c.clock()
        until = min(now, max(seen, last))
        if c.store.request(request.id).state is State.STOPPING:
            if c.store.finish(lease.id, now=now, charge_until=until).state is State.QUEUED:
                c.progress.requeued(request.id)
            return
        if known is not None:
            c.store.stop(request.id, State.FAILED, known, now=now)
            c.store.finish(lease.id, now=now, charge_until=until)
            return
        tail = c.files.log(request.id, lease.epoch)[-_LOG_TAIL:]
        retries = request.job.retries if request.job else 0
        lost = _times_lost(c, request) + 1
        again = lost <= retries
        what_next = (
            f"It is tried again (retry {lost} of {retries})."
            if again
            else "What it had written is kept as partial output."
        )
        cause = Cause(
            code=CauseCode.LOST,
            message=f"Lost: its processes disappeared without a word. {what_next}",
            details=tail.decode(errors="replace"),
        )
        c.store.lose(lease.id, cause, now=now, charge_until=until, requeue=again)
        if again:
            log.info("%s was lost: %s", lease.id, what_next)
            c.progress.requeued(request.id)


@dataclass(frozen=True, slots=True)
class SessionActions:
    """Sessions: the hub's spawners run them; the service watches and asks."""

    commands: Commands

    def not_started(self, lease: LeaseRecord, request: RequestRecord) -> bool:
        """``starting``, and no process. Returns whether anything was changed."""
        c = self.commands
        since = c.clock() - (lease.launched_at or lease.granted_at)
        patience = LAUNCH_GRACE if c.board.attached(request.id) else UNATTENDED_GRACE
        if since < patience:
            return False
        give_back_or_fail(c, lease, request, "JupyterHub could not start the session's server.")
        return True

    def died(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        seen: float,
        known: Cause | None = None,
    ) -> bool:
        """``running``, and no process is left. ``known``: why, where the engine knows it.

        A spawner that is just bringing it up notices too, and says why it did not start, with
        the end of its log: it is given a moment. Returns whether anything was changed.
        """
        c = self.commands
        now = c.clock()
        if known is None and c.board.attached(request.id) and now - seen < TELLING_GRACE:
            return False
        ended = Cause(code=CauseCode.SERVER_DIED, message="The session's server ended.")
        cause = known or ended
        c.store.stop(request.id, State.FAILED, cause, now=now)
        c.store.finish(lease.id, now=now, charge_until=min(now, seen))
        return True

    def ask_hub(self, request: RequestRecord) -> None:
        """Have the hub start (or take up again) this session's server."""
        c = self.commands
        log.info("asking the hub for %s of %s", request.server_name or "default", request.owner)
        options: dict[str, Json] = {
            "devices": request.devices,
            "hours": request.seconds / 3600,
            "group": request.group,
            **({"model": request.model} if request.model else {}),
        }
        c.board.ask(request.owner, request.server_name, request.id, now=c.clock())
        try:
            c.hub.start_server(request.owner, request.server_name, options)
        except NotFound as error:
            cause = Cause(code=CauseCode.START_FAILED, message=str(error))
            c.store.stop(request.id, State.FAILED, cause, now=c.clock())

    def tell_hub(self, request: RequestRecord) -> None:
        """Let the hub know at once that a session ends; it would notice by itself later."""
        self.commands.hub.stop_server(request.owner, request.server_name)

    def find_orphans(self) -> None:
        """Have the hub adopt running sessions that it does not know (it died while starting)."""
        c = self.commands
        running = c.store.requests(
            RequestFilter(kind=Kind.SESSION, states=frozenset({State.RUNNING}), limit=100_000)
        )
        settled = [r for r in running if r.started_at and c.clock() - r.started_at > SETTLED]
        if not settled:
            return
        known = {
            (user.name, server.name) for user in c.hub.users() for server in user.servers.values()
        }
        for request in settled:
            if (request.owner, request.server_name) not in known:
                self.ask_hub(request)


def give_back_or_fail(
    commands: Commands, lease: LeaseRecord, request: RequestRecord, why: str, details: str = ""
) -> None:
    """Nothing ran: another attempt, or the end after too many."""
    now = commands.clock()
    came_to_nothing = _came_to_nothing(commands, request)
    try:
        if came_to_nothing < MAX_ATTEMPTS:
            commands.store.give_back(lease.id, now=now, charge_until=lease.granted_at)
        else:
            cause = Cause(
                code=CauseCode.START_FAILED,
                message=f"{why} ({came_to_nothing} attempts)",
                details=details,
            )
            commands.store.stop(request.id, State.FAILED, cause, now=now)
            commands.store.finish(lease.id, now=now, charge_until=lease.granted_at)
    except StaleEpoch:
        log.info("%s moved on by itself", lease.id)
    commands.pulse.beat()


def _came_to_nothing(commands: Commands, request: RequestRecord) -> int:
    """How many of its attempts were started and never ran.

    Not those that were lost, which have a limit of their own, nor those whose device failed or
    whose engine did not answer.
    """
    moves = _moves(commands, request)
    excused = {epoch for epoch, state in moves if state in (State.LOST, State.HALTED)}
    away = commands.store.events(request.id, kinds=frozenset({ENGINE_AWAY}))
    excused |= {event.epoch for event in away}
    return len({epoch for epoch, state in moves if state == State.STARTING} - excused)


def _times_lost(commands: Commands, request: RequestRecord) -> int:
    """How many of its attempts ran and were lost; those that were given back are not."""
    return sum(state == State.LOST for _, state in _moves(commands, request))


def _moves(commands: Commands, request: RequestRecord) -> list[tuple[int, Json]]:
    """What states its attempts went through, in order."""
    found = commands.store.events(request.id, kinds=frozenset({"state"}))
    return [(event.epoch, event.data.get("state")) for event in found]
