"""Talk to the service during one start: open the request, wait in the queue, report, end it.

The service may restart at any moment: every call is idempotent and is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from ...hub.client.api.internal import InternalClient
from ...hub.errors import Conflict, Unavailable
from ...hub.scheduling.model.states import State
from ...hub.schemas import RequestOut, StartedIn, StopIn
from .start_refused import StartRefused

RETRY_SECONDS = 0.25
REPORT_SECONDS = 20.0
"""How long to try to report a process to the service, which finds it by its lease later."""
HAS_LEASE = frozenset({State.GRANTED, State.STARTING, State.RUNNING})

Say = Callable[[int, str], None]
"""Takes a percentage and a sentence."""


class StaleRequest(Exception):
    """The request belongs to a server that has ended: open a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """Request a lease for one server.

    Attributes:
        patience: seconds for which a call is retried while the service does not answer.
        say: gets the messages for the person process waits.
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
        """Wait in the queue; the result holds a lease.

        Raises:
            StaleRequest: it was stopping when it was found, and has ended now.
            StartRefused: it ended while queued, or its owner chose to claim it later.
        """
        earlier = request.state == State.STOPPING
        percent = 5
        async with aclosing(self.link.statuses(request.id)) as statuses:
            async for found in statuses:
                if found is None:
                    self.say(
                        percent,
                        "The Carrel service does not answer. You keep your place in the queue.",
                    )
                elif found.ended:
                    raise StaleRequest if earlier else ended(found)
                elif found.claim:
                    raise StartRefused(
                        "You keep your place in the queue. Claim the device when it is granted.",
                        reason="kept",
                        status_code=409,
                    )
                elif found.lease and found.state in HAS_LEASE:
                    return found
                else:
                    percent, sentence = _waiting(found)
                    self.say(percent, sentence)
        raise StaleRequest  # the stream ends only after the request

    async def launch(self, request_id: str, lease_id: str) -> None:
        """Write the intent to start.

        Raises:
            StaleRequest: the lease was lost meanwhile, and the request is queued again.
            StartRefused: the request was ended meanwhile.
        """
        try:
            await self.retry(lambda: self.link.launch(lease_id), self.patience)
        except Conflict as error:
            async with aclosing(self.link.statuses(request_id)) as statuses:
                async for found in statuses:
                    if found and found.ended:
                        raise ended(found) from error
                    if found and found.state != State.STOPPING:
                        break
            raise StaleRequest from error

    @asynccontextmanager
    async def attached(self, request_id: str) -> AsyncIterator[None]:
        """Listen to the request, so that the service knows that a start attends to it."""
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
        """Wait until the request has ended, which is when none of its processes is left."""
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
    """Return a refusal that says why the request ended."""
    cause = request.cause
    return StartRefused(
        cause.message if cause else f"The session's request is {request.state}.",
        reason=cause.code if cause else "ended",
        status_code=409,
        details=cause.details if cause else "",
    )


def _waiting(request: RequestOut) -> tuple[int, str]:
    match request.state:
        case State.QUEUED if request.wait:
            return 10, request.wait.sentence
        case State.STOPPING:
            return 5, "The previous session of this name is still stopping."
        case _:
            return 10, "The request is in the queue."
