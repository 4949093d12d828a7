"""Request a lease from the service during a start: open the request, wait, report, end it.

The service may restart at any time: every call is idempotent and is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from ...hub.client.api.internal import InternalClient
from ...hub.errors import Conflict, NotFound, Unavailable
from ...hub.scheduling.model.states import State
from ...hub.schemas import RequestOut, StartedIn, StopIn
from .start_refused import StartRefused

RETRY_SECONDS = 0.25
REPORT_SECONDS = 20.0
"""How long to retry the report of a process; the service would find it by its lease later."""
HAS_LEASE = frozenset({State.GRANTED, State.STARTING, State.RUNNING})

Say = Callable[[int, str], None]
"""Receives a percentage and a message."""


class StaleRequest(Exception):
    """The request belongs to a server that has ended; a new request is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """Requests a lease for one server.

    Attributes:
        patience: seconds for which a call is retried while the service does not answer.
        say: receives the messages for the waiting user.
    """

    link: InternalClient
    owner: str
    server_name: str
    patience: float
    say: Say

    async def open(self, options: dict[str, JsonValue]) -> RequestOut:
        """Return the live request of this server, or open a new one."""
        return await self.retry(
            lambda: self.link.open_session(self.owner, self.server_name, options), self.patience
        )

    async def until_granted(self, request: RequestOut) -> RequestOut:
        """Wait in the queue; return the request with its lease.

        Raises:
            StaleRequest: the request was stopping when it was found, and has ended.
            StartRefused: it ended while queued, or its owner chose to claim it later.
        """
        was_stopping = request.state == State.STOPPING
        percent = 5
        async with aclosing(self.link.statuses(request.id)) as statuses:
            async for current in statuses:
                if current is None:
                    self.say(
                        percent,
                        "The Carrel service does not answer. You keep your place in the queue.",
                    )
                elif current.ended:
                    raise StaleRequest if was_stopping else ended(current)
                elif current.claim:
                    raise StartRefused(
                        "You keep your place in the queue. Claim the device when it is granted.",
                        reason="kept",
                        status_code=409,
                    )
                elif current.lease and current.state in HAS_LEASE:
                    return current
                else:
                    percent, message = _wait_message(current)
                    self.say(percent, message)
        raise StaleRequest  # the stream ends only after the request has ended

    async def launch(self, request_id: str, lease_id: str) -> None:
        """Record that the server is about to start.

        Raises:
            StaleRequest: the lease was lost meanwhile, and the request is queued again.
            StartRefused: the request was ended meanwhile.
        """
        try:
            await self.retry(lambda: self.link.launch(lease_id), self.patience)
        except Conflict as error:
            async with aclosing(self.link.statuses(request_id)) as statuses:
                async for current in statuses:
                    if current and current.ended:
                        raise ended(current) from error
                    if current and current.state != State.STOPPING:
                        break
            raise StaleRequest from error

    async def secret_ticket(self, lease_id: str) -> str:
        """Return a ticket for the secrets of the session; empty if it uses none.

        A service from before there were secrets has no ticket either.
        """
        try:
            return await self.link.secret_ticket(lease_id)
        except NotFound:
            return ""

    @asynccontextmanager
    async def attached(self, request_id: str) -> AsyncIterator[None]:
        """Listen to the request in the block, so that the service counts it as attended."""
        listening = asyncio.create_task(self.end_of(request_id))
        try:
            yield
        finally:
            listening.cancel()

    async def report(self, lease_id: str, process: StartedIn) -> None:
        """Report the server's process.

        Raises:
            Conflict: the lease belongs to another process, or is ending: this one must stop.
        """
        try:
            await self.retry(lambda: self.link.started(lease_id, process), REPORT_SECONDS)
        except Unavailable:
            return  # the service finds the process by its lease when it is back

    async def stop(self, request_id: str, how: StopIn, patience: float) -> RequestOut:
        return await self.retry(lambda: self.link.stop(request_id, how), patience)

    async def end_of(self, request_id: str) -> None:
        """Wait until the request has ended, when none of its processes is left."""
        async with aclosing(self.link.statuses(request_id)) as statuses:
            async for _ in statuses:
                pass

    async def retry(self, call: Callable[[], Awaitable[RequestOut]], patience: float) -> RequestOut:
        """Retry a call while the service does not answer; raises Unavailable after ``patience``."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while True:
            try:
                return await call()
            except Unavailable:
                if loop.time() > deadline:
                    raise
                self.say(2, "The Carrel service does not answer; trying again.")
                await asyncio.sleep(RETRY_SECONDS)


def ended(request: RequestOut) -> StartRefused:
    """Return a refusal with the cause of the request's end."""
    cause = request.cause
    return StartRefused(
        cause.message if cause else f"The session's request is {request.state}.",
        reason=cause.code if cause else "ended",
        status_code=409,
        details=cause.details if cause else "",
    )


def _wait_message(request: RequestOut) -> tuple[int, str]:
    match request.state:
        case State.QUEUED if request.wait:
            return 10, request.wait.sentence
        case State.STOPPING:
            return 5, "The previous session of this name is still stopping."
        case _:
            return 10, "The request is in the queue."
