"""A JupyterHub spawner on a lease: ask the service, wait in its queue, start, give back.

``LeaseMixin`` goes in front of an engine's spawner (``class X(LeaseMixin, DockerSpawner)``).
The request lives in the service. A hub that dies while a start waits loses nothing: the next
start of the same server finds the same request again, and a server that is already running
on it is adopted.

    open ──▶ wait for the lease ──▶ its turn ──▶ launch ──▶ tell who it is ──▶ answers HTTP
      ▲              │ ended: refused with its cause            │ dies: refused with its log
      └── what was found is an earlier life: wait for its end
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing

from jupyterhub.spawner import Spawner
from pydantic import JsonValue
from sqlalchemy.orm import object_session
from traitlets import default

from ...hub.client.api.internal import InternalClient
from ...hub.errors import CarrelError, Unavailable
from ...hub.files.filenames import safe_name
from ...hub.scheduling.model.states import State
from ...hub.schemas import LeaseOut, RequestOut, StartedIn, StopIn
from .lease_options import LeaseOptions, lease_environment
from .lease_request import LeaseRequest, StaleRequest, ended
from .readiness import Address, ServerDied, wait_until_ready
from .start_progress import StartProgress
from .start_queue import StartQueue
from .start_refused import StartRefused, refused
from .user_options import FORM, checked, from_form

RELEASE_SECONDS = 0.7
"""JupyterHub gives a cancelled start one second before it goes on without it."""
LEFT_SECONDS = 2.0
"""After the end of a cancelled start: by then JupyterHub has begun to stop its server, or never
will."""
END_SECONDS = 10.0
"""How long stop() waits for the service to confirm the end; its ladder takes about 4 s."""
FAILURE_SECONDS = 1.0
"""How long a failed start tries to tell the service, which notices by itself later."""
ROUNDS = 5
"""How often one start begins anew because the request that it found had come to its end."""

_giving_back: dict[tuple[str, str], asyncio.Task[None]] = {}
"""Withdrawals still under way, by owner and server name; they outlive their spawner."""
_tidying: set[asyncio.Task[None]] = set()
"""The end of cancelled starts, as long as it is looked at."""


_turns: defaultdict[str, StartQueue] = defaultdict(StartQueue)
"""By machine."""


class LeaseMixin(LeaseOptions, Spawner):  # type: ignore[misc]  # jupyterhub has no types
    """Starts a server only on a lease of the Carrel service, and gives the lease back."""

    look_seconds = 0.0
    """Between two questions whether a server that has not answered yet still runs."""
    request_id = ""
    lease_id = ""
    _starting = False
    _lease: LeaseOut | None = None
    _group = ""
    _opening: asyncio.Task[RequestOut] | None = None

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._teller = StartProgress()
        if self.user is not None and self.orm_spawner is not None:
            self.oauth_client_id = oauth_client_id(self.user.name, self.name)

    # -- what an engine knows about its servers ---------------------------------------------

    async def start_server(self) -> Address:
        """Start it on the lease; the address need not answer yet."""
        address: Address = await super().start()
        return address

    async def running_server(self, lease: LeaseOut) -> Address | None:
        """Adopt the server that already runs on this lease, if there is one."""
        return None

    def who_it_is(self) -> StartedIn | None:
        """The process just started, where servers are processes of this host."""
        return None

    def last_words(self) -> str:
        """The end of the server's log."""
        return ""

    async def kill_started(self) -> None:
        """End at once what was started; there is nothing in it yet to save."""
        await super().stop(now=True)

    # -- the spawner's life -----------------------------------------------------------------

    async def start(self) -> Address:
        """Return the address of a server that answers.

        Raises:
            StartRefused: not admitted, ended while it waited, or died; says why.
        """
        self._starting, keep, cancelled = True, False, False
        try:
            if giving_back := _giving_back.get((self.user.name, self.name)):
                await asyncio.wait({giving_back})
            address = await self._start_on_a_lease()
            keep = True
        except asyncio.CancelledError:
            # Where the hub itself leaves, the request waits for the next one, and a server
            # that has started is adopted by it.
            keep = hub_is_leaving()
            cancelled = not keep
            if cancelled:
                await self._withdraw()
            raise
        except CarrelError as error:
            raise refused(error) from error
        else:
            return address
        finally:
            self._starting = False
            if not keep:
                if self.lease_id:
                    await self.kill_started()
                self.clear_state()
            if cancelled:
                task = asyncio.create_task(self._leave_no_server())
                _tidying.add(task)
                task.add_done_callback(_tidying.discard)

    async def stop(self, now: bool = False) -> None:
        """End the request: the service stops the whole set of processes and confirms it."""
        if self.request_id:
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._applicant.link.stop(self.request_id, StopIn(cause="stopped"))
                    await self._applicant.end_of(self.request_id)
            except (CarrelError, TimeoutError) as error:
                self.log.warning("Carrel did not stop %s itself: %s", self._log_name, error)
        # Reaps what the service has stopped, and stops what it could not.
        if await self.poll() is None:
            await super().stop(now)

    async def poll(self) -> int | None:
        if self._starting:
            return None
        status: int | None = await super().poll()
        return status

    async def progress(self) -> AsyncGenerator[dict[str, object], None]:
        """Tell each change once; JupyterHub stops listening when the start is over."""
        async with aclosing(self._teller.listen()) as sentences:
            async for told in sentences:
                yield {"progress": told.percent, "message": told.sentence}

    def get_state(self) -> dict[str, JsonValue]:
        state: dict[str, JsonValue] = super().get_state()
        if self.request_id:
            state |= {"request_id": self.request_id, "lease_id": self.lease_id}
        return state

    def load_state(self, state: dict[str, JsonValue]) -> None:
        super().load_state(state)
        self.request_id = str(state.get("request_id", ""))
        self.lease_id = str(state.get("lease_id", ""))

    def clear_state(self) -> None:
        super().clear_state()
        self.request_id = self.lease_id = ""

    def get_env(self) -> dict[str, str]:
        """What belongs to the lease comes last: nothing that people set replaces it."""
        env: dict[str, str] = super().get_env()
        if self._lease is None:
            return env
        return env | lease_environment(
            self._lease,
            request_id=self.request_id,
            state_root=self.state_root,
            carrel_url=self.carrel_url,
            public_url=self.carrel_public_url or self.carrel_url,
        )

    @default("options_form")
    def _options_form(self) -> str:
        return FORM

    @default("options_from_form")
    def _options_from_form(self) -> object:
        return from_form

    @default("apply_user_options")
    def _apply_user_options(self) -> object:
        """Nothing to apply: refuses what has the wrong shape before anything else happens."""

        def apply(_spawner: Spawner, options: dict[str, object]) -> None:
            checked(options)

        return apply

    # -- steps of a start -------------------------------------------------------------------

    @property
    def _applicant(self) -> LeaseRequest:
        return LeaseRequest(
            link=InternalClient(self.service_url, self.hub_token),
            owner=self.user.name,
            server_name=self.name,
            patience=self.service_timeout,
            say=self._teller.say,
        )

    async def _start_on_a_lease(self) -> Address:
        for _ in range(ROUNDS):
            try:
                request = await self._applicant.until_granted(await self._open())
                found = await self._found_running(request)
                if request.lease is None:
                    continue
                if found is not None:
                    return await self._launch(request, request.lease, found)
                # The lease is held, and no other start is asked for, as long as somebody attends.
                async with self._applicant.attending(request.id), self._turn(request.lease):
                    await self._applicant.launch(request.id, request.lease.id)
                    return await self._launch(request, request.lease, None)
            except StaleRequest:
                self._teller.say(5, "The previous session of this name has ended; asking anew.")
        raise Unavailable(
            "The session could not be started: its lease went back several times.",
            accepted="Please start it again.",
        )

    def _turn(self, lease: LeaseOut) -> AbstractAsyncContextManager[None]:
        """A device that is leased already is not kept waiting for those that need none."""

        def tell(place: int) -> None:
            self._teller.say(
                55,
                "The lease is granted. Many sessions start at this moment: "
                f"this one is number {place} of those that wait for their turn.",
            )

        return _turns[lease.node].take(self.turns, tell, dear=bool(lease.devices))

    async def _open(self) -> RequestOut:
        self._teller.say(0, "Asking Carrel.")
        self.request_id = ""
        # A task of its own: a start that is cancelled has to know what it has opened.
        self._opening = asyncio.create_task(self._applicant.open(checked(self.user_options or {})))
        request = await asyncio.shield(self._opening)
        self.request_id = request.id
        return request

    async def _found_running(self, request: RequestOut) -> Address | None:
        """The server of a hub that died before it could write down what it had started.

        Raises:
            EarlierLife: that server is dead; the service knows now.
        """
        if request.lease is None or request.state == State.GRANTED:
            return None
        if address := await self.running_server(request.lease):
            self.log.info("Adopting the server of %s, lease %s", self._log_name, request.lease.id)
            return address
        if request.state == State.STARTING:
            return None  # the intent was written and nothing forked: this start does it
        died = StopIn(cause="server_died", message="The server died while the hub was away.")
        await self._applicant.stop(request.id, died, self.service_timeout)
        await self._applicant.end_of(request.id)
        raise StaleRequest

    async def _launch(self, request: RequestOut, lease: LeaseOut, found: Address | None) -> Address:
        """Start the server, unless it was found running, and wait for its answer."""
        self._lease, self.lease_id, self._group = lease, lease.id, request.group
        self._teller.say(60, "The lease is granted; the session starts.")
        try:
            async with asyncio.timeout(self.launch_timeout):
                address = found or await self.start_server()
                self._write_down(address)
                await self._settle(lease, address)
        except TimeoutError:
            why = f"The session did not answer within {self.launch_timeout:.0f} s."
            raise await self._failure(request.id, why) from None
        except (OSError, CarrelError, ServerDied) as error:
            why = f"The session could not be started: {error}"
            raise await self._failure(request.id, why) from error
        self._teller.say(95, "The session answers.")
        return address

    def _write_down(self, address: Address) -> None:
        """Commit at once what a hub needs that takes over after this one was killed."""
        if self.server is not None:
            self.server.ip, self.server.port = address
        self.orm_spawner.state = self.get_state()
        if session := object_session(self.orm_spawner):
            session.commit()

    async def _settle(self, lease: LeaseOut, address: Address) -> None:
        """Tell the service which process it is while the server comes up."""
        who = self.who_it_is()
        path = f"{self.server.base_url if self.server is not None else '/'}api"
        answer = wait_until_ready(address, path, super().poll, every=self.look_seconds)
        if who is None:
            return await answer
        reporting = asyncio.create_task(self._applicant.report(lease.id, who))
        try:
            await answer
            await reporting
        finally:
            reporting.cancel()

    async def _failure(self, request_id: str, why: str) -> StartRefused:
        """End what was started; the refusal carries the end of the log."""
        await self.kill_started()
        tail = self.last_words()
        failed = StopIn(cause="start_failed", message=why[:2000], details=tail)
        try:
            request = await self._applicant.stop(request_id, failed, FAILURE_SECONDS)
        except CarrelError as error:
            self.log.warning("Carrel was not told that %s failed: %s", self._log_name, error)
        else:
            if request.cause and request.cause.code != failed.cause:
                return ended(request)  # somebody ended it: that is why it died
        return StartRefused(why, reason="start_failed", status_code=500, details=tail)

    async def _withdraw(self) -> None:
        """Give the request back; goes on in the background if that takes longer."""
        key = self.user.name, self.name
        task = asyncio.create_task(self._give_back(self._opening, self.request_id))
        _giving_back[key] = task
        task.add_done_callback(lambda _: _giving_back.pop(key, None))
        await asyncio.wait({task}, timeout=RELEASE_SECONDS)

    async def _give_back(self, opening: asyncio.Task[RequestOut] | None, request_id: str) -> None:
        if self.lease_id:
            await self.kill_started()
        try:
            if not request_id and opening:
                request_id = (await opening).id
            if request_id:
                cancelled = StopIn(cause="cancelled")
                await self._applicant.stop(request_id, cancelled, self.service_timeout)
        except CarrelError as error:
            self.log.warning("Carrel was not told of a cancelled start: %s", error)

    async def _leave_no_server(self) -> None:
        """Where a cancelled start took longer to end than JupyterHub waits, it would list a
        server as ready that is not there, and look at it no more."""
        await asyncio.sleep(LEFT_SECONDS)
        known = self.user.spawners.get(self.name) is self
        if known and self.ready and not self.lease_id:
            self.log.warning("JupyterHub forgot to end the cancelled start of %s", self._log_name)
            await self.user.stop(self.name)


def oauth_client_id(owner: str, server_name: str) -> str:
    """A name for each server's OAuth client, and never one for two.

    JupyterHub joins the names with one hyphen. The servers b-c of a and c of a-b would then
    have one client: whoever starts the second one fails, or takes over the first one's secret.
    """
    server = f"--{safe_name(server_name)}" if server_name else ""
    return f"jupyterhub-user-{safe_name(owner)}{server}"


def hub_is_leaving() -> bool:
    """Whether this cancellation is the hub's own shutdown, which cancels every task."""
    return any(
        getattr(task.get_coro(), "__qualname__", "").endswith(".shutdown_cancel_tasks")
        for task in asyncio.all_tasks()
    )
