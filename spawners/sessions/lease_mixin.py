"""A JupyterHub spawner on a lease: request a lease, wait in the queue, start, release the lease.

``LeaseMixin`` precedes an engine's spawner (``class X(LeaseMixin, DockerSpawner)``). The service
stores the request, so that a hub that dies during a start loses nothing: the next start of the same
server finds the same request, and adopts a server that already runs on it.

    open ──▶ wait for the lease ──▶ start queue ──▶ launch ──▶ report process ──▶ answers HTTP
      ▲              │ ended: refused with its cause            │ dies: refused with its log
      └── the request is stale: wait for its end
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
from .lease_options import SECRET_TICKET, LeaseOptions, lease_environment
from .lease_request import LeaseRequest, StaleRequest, ended
from .readiness import Address, ServerDied, wait_until_ready
from .start_progress import StartProgress
from .start_queue import StartQueue
from .start_refused import StartRefused, refused
from .user_options import FORM, checked, from_form

RELEASE_SECONDS = 0.7
"""JupyterHub waits one second for a cancelled start."""
LEFT_SECONDS = 2.0
"""Delay after a cancelled start; if JupyterHub has not begun to stop the server by then, it never
will."""
END_SECONDS = 10.0
"""How long stop() waits for the service to confirm the end; its signals take about 4 s."""
FAILURE_SECONDS = 1.0
"""How long a failed start tries to report to the service, which would notice it later."""
ROUNDS = 5
"""How often a start begins again because the request that it found had ended."""

_withdrawals: dict[tuple[str, str], asyncio.Task[None]] = {}
"""Withdrawals still in progress, by owner and server name; they outlive their spawner."""
_cleanups: set[asyncio.Task[None]] = set()
"""Checks after cancelled starts."""
_start_queues: defaultdict[str, StartQueue] = defaultdict(StartQueue)
"""The start queues by node."""


class LeaseMixin(LeaseOptions, Spawner):  # type: ignore[misc]  # jupyterhub has no types
    """Starts a server only on a lease of the Carrel service, and releases the lease."""

    poll_seconds = 0.0
    """Interval between checks that a server still runs while it has not answered yet."""
    request_id = ""
    lease_id = ""
    _starting = False
    lease: LeaseOut | None = None
    """The lease on which the server starts or runs; None before the grant."""
    _group = ""
    _seconds = 0
    """The time limit of the request."""
    _ticket = ""
    """With which the session fetches its secrets, once; empty if it uses none."""
    _opening: asyncio.Task[RequestOut] | None = None

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._progress = StartProgress()
        if self.user is not None and self.orm_spawner is not None:
            self.oauth_client_id = oauth_client_id(self.user.name, self.name)

    # -- implemented by engines -------------------------------------------------------------

    async def start_server(self) -> Address:
        """Start the server on the lease and return its address, which need not answer yet."""
        address: Address = await super().start()
        return address

    async def await_cluster(self) -> None:
        """Wait in the queue of a cluster, before the time of the launch itself begins to count."""

    def device_environment(self) -> dict[str, str] | None:
        """Return variables for the devices, if the engine chooses them itself."""
        return None

    async def running_server(self, lease: LeaseOut) -> Address | None:
        """Adopt the server that already runs on this lease, if there is one."""
        return None

    def server_process(self) -> StartedIn | None:
        """Return the process that was just started, if servers are processes of this host."""
        return None

    def log_tail(self) -> str:
        """Return the end of the server's log."""
        return ""

    async def kill_started(self) -> None:
        """Kill the started server; it contains no work yet."""
        await super().stop(now=True)

    # -- Spawner ----------------------------------------------------------------------------

    async def start(self) -> Address:
        """Return the address of a server that answers.

        Raises:
            StartRefused: the request was not admitted, ended while queued, or its server died.
        """
        self._starting, keep, cancelled = True, False, False
        try:
            if withdrawal := _withdrawals.get((self.user.name, self.name)):
                await asyncio.wait({withdrawal})
            address = await self._start_on_a_lease()
            keep = True
        except asyncio.CancelledError:
            # If the hub itself shuts down, the request is kept for the next hub, which adopts a
            # server that has started.
            keep = hub_is_shutting_down()
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
                task = asyncio.create_task(self._remove_leftover_server())
                _cleanups.add(task)
                task.add_done_callback(_cleanups.discard)

    async def stop(self, now: bool = False) -> None:
        """End the request: the service stops all its processes and confirms it."""
        if self.request_id:
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._lease_request.link.stop(self.request_id, StopIn(cause="stopped"))
                    await self._lease_request.end_of(self.request_id)
            except (CarrelError, TimeoutError) as error:
                self.log.warning("Carrel did not stop %s: %s", self._log_name, error)
        # Reaps the processes that the service has stopped, and stops those that are left.
        if await self.poll() is None:
            await super().stop(now)

    async def poll(self) -> int | None:
        if self._starting:
            return None
        status: int | None = await super().poll()
        return status

    async def progress(self) -> AsyncGenerator[dict[str, object], None]:
        """Yield each message once; JupyterHub stops listening when the start is over."""
        async with aclosing(self._progress.listen()) as messages:
            async for message in messages:
                yield {"progress": message.percent, "message": message.sentence}

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
        """Add the lease's variables last, so that users cannot replace them."""
        env: dict[str, str] = super().get_env()
        if self.lease is None:
            return env
        ticket = {SECRET_TICKET: self._ticket} if self._ticket else {}
        return (
            env
            | ticket
            | lease_environment(
                self.lease,
                request_id=self.request_id,
                state_root=self.state_root,
                carrel_url=self.carrel_url,
                public_url=self.carrel_public_url or self.carrel_url,
                devices=self.device_environment(),
            )
        )

    @default("options_form")
    def _options_form(self) -> str:
        return FORM

    @default("options_from_form")
    def _options_from_form(self) -> object:
        return from_form

    @default("apply_user_options")
    def _apply_user_options(self) -> object:
        """Reject options of the wrong shape early; there is nothing to apply."""

        def apply(_spawner: Spawner, options: dict[str, object]) -> None:
            checked(options)

        return apply

    # -- steps of a start -------------------------------------------------------------------

    @property
    def _lease_request(self) -> LeaseRequest:
        return LeaseRequest(
            link=InternalClient(self.service_url, self.hub_token),
            owner=self.user.name,
            server_name=self.name,
            patience=self.service_timeout,
            say=self._progress.say,
        )

    async def _start_on_a_lease(self) -> Address:
        for _ in range(ROUNDS):
            try:
                request = await self._lease_request.until_granted(await self._open())
                found = await self._find_running(request)
                if request.lease is None:
                    continue
                if found is not None:
                    return await self._launch(request, request.lease, found)
                # While this is attached, the service keeps the lease and requests no other start.
                async with (
                    self._lease_request.attached(request.id),
                    self._start_slot(request.lease),
                ):
                    await self._lease_request.launch(request.id, request.lease.id)
                    self._ticket = await self._lease_request.secret_ticket(request.lease.id)
                    return await self._launch(request, request.lease, None)
            except StaleRequest:
                self._progress.say(5, "The previous session of this name has ended; trying again.")
        raise Unavailable(
            "The session could not be started: it lost its lease several times.",
            accepted="Start it again.",
        )

    def _start_slot(self, lease: LeaseOut) -> AbstractAsyncContextManager[None]:
        """Wait in the start queue, in which sessions with devices come first."""

        def report(position: int) -> None:
            self._progress.say(
                55,
                "The lease is granted. Many sessions are starting now: "
                f"yours is number {position} in the start queue.",
            )

        return _start_queues[lease.node].slot(
            self.starts_at_once, report, holds_device=bool(lease.devices)
        )

    async def _open(self) -> RequestOut:
        self._progress.say(0, "Requesting the session.")
        self.request_id = ""
        # A separate task, because a cancelled start must still learn the request that it opened.
        self._opening = asyncio.create_task(
            self._lease_request.open(checked(self.user_options or {}))
        )
        request = await asyncio.shield(self._opening)
        self.request_id = request.id
        return request

    async def _find_running(self, request: RequestOut) -> Address | None:
        """Find the server of a hub that died before it could save the server's address.

        Raises:
            StaleRequest: that server is dead, and its request was stopped.
        """
        if request.lease is None or request.state == State.GRANTED:
            return None
        if address := await self.running_server(request.lease):
            self.log.info("Adopting the server of %s, lease %s", self._log_name, request.lease.id)
            return address
        if request.state == State.STARTING:
            return None  # the start was recorded, but no server is running: start it now
        died = StopIn(cause="server_died", message="The server died while the hub was away.")
        await self._lease_request.stop(request.id, died, self.service_timeout)
        await self._lease_request.end_of(request.id)
        raise StaleRequest

    async def _launch(self, request: RequestOut, lease: LeaseOut, found: Address | None) -> Address:
        """Start the server, unless it is already running, and wait for its answer."""
        self.lease, self.lease_id, self._group = lease, lease.id, request.group
        self._seconds = request.seconds
        self._progress.say(60, "The lease is granted; the session starts.")
        try:
            if found is None:
                await self.await_cluster()
            async with asyncio.timeout(self.launch_timeout):
                address = found or await self.start_server()
                self._save_state(address)
                await self._await_answer(lease, address)
        except TimeoutError:
            why = f"The session did not answer within {self.launch_timeout:.0f} s."
            raise await self._failure(request.id, why) from None
        except (OSError, CarrelError, ServerDied) as error:
            why = f"The session could not be started: {error}"
            raise await self._failure(request.id, why) from error
        self._progress.say(95, "The session answers.")
        return address

    def _save_state(self, address: Address) -> None:
        """Commit the state at once, so that a later hub can adopt the server."""
        if self.server is not None:
            self.server.ip, self.server.port = address
        self.orm_spawner.state = self.get_state()
        if session := object_session(self.orm_spawner):
            session.commit()

    async def _await_answer(self, lease: LeaseOut, address: Address) -> None:
        """Wait for the server's answer, and meanwhile report its process to the service."""
        process = self.server_process()
        path = f"{self.server.base_url if self.server is not None else '/'}api"
        answer = wait_until_ready(address, path, super().poll, every=self.poll_seconds)
        if process is None:
            return await answer
        reporting = asyncio.create_task(self._lease_request.report(lease.id, process))
        try:
            await answer
            await reporting
        finally:
            reporting.cancel()

    async def _failure(self, request_id: str, why: str) -> StartRefused:
        """Kill the started server, and return the refusal with the end of its log."""
        await self.kill_started()
        tail = self.log_tail()
        failed = StopIn(cause="start_failed", message=why[:2000], details=tail)
        try:
            request = await self._lease_request.stop(request_id, failed, FAILURE_SECONDS)
        except CarrelError as error:
            self.log.warning(
                "The failure of %s was not reported to Carrel: %s", self._log_name, error
            )
        else:
            if request.cause and request.cause.code != failed.cause:
                return ended(request)  # the server died because its request was ended
        return StartRefused(why, reason="start_failed", status_code=500, details=tail)

    async def _withdraw(self) -> None:
        """Withdraw the request; continues in the background after ``RELEASE_SECONDS``."""
        key = self.user.name, self.name
        task = asyncio.create_task(self._withdraw_request(self._opening, self.request_id))
        _withdrawals[key] = task
        task.add_done_callback(lambda _: _withdrawals.pop(key, None))
        await asyncio.wait({task}, timeout=RELEASE_SECONDS)

    async def _withdraw_request(
        self, opening: asyncio.Task[RequestOut] | None, request_id: str
    ) -> None:
        if self.lease_id:
            await self.kill_started()
        try:
            if not request_id and opening:
                request_id = (await opening).id
            if request_id:
                cancelled = StopIn(cause="cancelled")
                await self._lease_request.stop(request_id, cancelled, self.service_timeout)
        except CarrelError as error:
            self.log.warning("A cancelled start was not reported to Carrel: %s", error)

    async def _remove_leftover_server(self) -> None:
        """Stop a server that JupyterHub lists as ready although its start was cancelled.

        This happens when a cancelled start takes longer to end than JupyterHub waits.
        """
        await asyncio.sleep(LEFT_SECONDS)
        known = self.user.spawners.get(self.name) is self
        if known and self.ready and not self.lease_id:
            self.log.warning("JupyterHub did not end the cancelled start of %s", self._log_name)
            await self.user.stop(self.name)


def oauth_client_id(owner: str, server_name: str) -> str:
    """Return a unique name for the OAuth client of a server.

    JupyterHub joins user and server with one hyphen. Server b-c of user a and server c of user a-b
    would share a client: the second start would fail, or take over the first one's secret.
    """
    server = f"--{safe_name(server_name)}" if server_name else ""
    return f"jupyterhub-user-{safe_name(owner)}{server}"


def hub_is_shutting_down() -> bool:
    """Whether this cancellation is the hub's own shutdown, which cancels every task."""
    return any(
        getattr(task.get_coro(), "__qualname__", "").endswith(".shutdown_cancel_tasks")
        for task in asyncio.all_tasks()
    )
