"""Calls of JupyterHub's spawners, authorized by the hub's token."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from pydantic import BaseModel, JsonValue

from ...errors import Unavailable
from ...schemas import OpenSessionIn, RequestOut, StartedIn, StopIn
from ...schemas.grading import GradedOut
from ...schemas.secrets.bodies import SecretTicketOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment
from ..transport.site_url import SiteUrl
from ..transport.sse import Parser
from ..transport.transports import PooledTransport

SILENCE_SECONDS = 45.0
"""A stream without data for this long is lost; the service sends data every 15 s."""
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0


class InternalClient(Connection):
    """Makes the calls that only JupyterHub may make; they raise the classes of ``hub.errors``.

    Args:
        service_url: without a trailing slash, as in ``Settings.service_url``.
    """

    def __init__(self, service_url: str, hub_token: str) -> None:
        site = SiteUrl.at(service_url)
        super().__init__(service_url, hub_token, transport=PooledTransport(site, hub_token))

    async def open_session(
        self, owner: str, server_name: str, options: dict[str, JsonValue]
    ) -> RequestOut:
        """Return the live request of a server, or create one. Safe to repeat."""
        body = OpenSessionIn(owner=owner, server_name=server_name, options=options)
        call = Call(method="PUT", path="sessions", json=_json(body))
        return await self._read_call(call, RequestOut)

    async def request(self, request_id: str) -> RequestOut:
        """Return a request.

        Raises:
            NotFound: there is no such request.
        """
        return await self._get(f"requests/{segment(request_id)}", RequestOut)

    async def stop(self, request_id: str, body: StopIn) -> RequestOut:
        """Report how a session ended."""
        return await self._post(f"requests/{segment(request_id)}/stop", RequestOut, _json(body))

    async def launch(self, lease_id: str) -> RequestOut:
        """Store that the session is about to start.

        Raises:
            Conflict: the lease was lost meanwhile.
        """
        return await self._post(f"leases/{segment(lease_id)}/launch", RequestOut)

    async def secret_ticket(self, lease_id: str) -> str:
        """Return a ticket with which the session fetches its secrets; empty if it uses none."""
        answer = await self._post(f"leases/{segment(lease_id)}/secrets/ticket", SecretTicketOut)
        return answer.ticket

    async def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        """Report the process of a session."""
        return await self._post(f"leases/{segment(lease_id)}/started", RequestOut, _json(body))

    async def graded(self, person: str) -> tuple[str, ...]:
        """Return the courses that a person teaches or grades."""
        graded = await self._get(f"people/{segment(person)}/graded", GradedOut)
        return tuple(graded.courses)

    async def statuses(self, request_id: str) -> AsyncGenerator[RequestOut | None, None]:
        """Yield the request whenever it changes, until it has ended.

        Yields None when the service does not answer, and reconnects. Close the iterator
        (``aclosing``) to stop listening: an open stream counts as a listener of the request.
        """
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                async with aclosing(self._stream(request_id)) as stream:
                    async for status in stream:
                        pause = FIRST_PAUSE_SECONDS
                        yield status
                        if status.ended:
                            return
            except Unavailable:
                yield None
            await self._transport.pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _stream(self, request_id: str) -> AsyncGenerator[RequestOut, None]:
        path = f"requests/{segment(request_id)}/events"
        call = Call(method="GET", path=path, silence=SILENCE_SECONDS)
        parser = Parser()
        async with aclosing(self._transport.lines(call)) as lines:
            async for line in lines:
                message = parser.feed(line)
                if message and message.event == "status":
                    yield self._parse(message, RequestOut)


def _json(body: BaseModel) -> Mapping[str, JsonValue]:
    fields: dict[str, JsonValue] = body.model_dump(mode="json")
    return fields
