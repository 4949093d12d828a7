"""The service's REST API as typed calls, and its event streams as iterators.

Everything is written once, here, as coroutines over a ``Transport``. ``Client`` runs the same
coroutines over a transport that blocks (see ``blocking``).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote, unquote

from pydantic import BaseModel, ValidationError

from ..errors import Unavailable
from ..scheduling.lifecycle import TERMINAL, State
from ..wire import (
    EventOut,
    FilesOut,
    GroupOut,
    GroupsOut,
    JobIn,
    MeOut,
    PoolOut,
    QueueOut,
    RequestOut,
    RequestsOut,
    SessionIn,
    UsageReport,
)
from .calls import Answer, Call, Transport
from .credentials import credentials_here
from .eventstream import Message, Parser
from .failures import no_carrel
from .patience import Patience
from .site import Site
from .transports import LoopTransport

KEEP_ALIVE_SECONDS = 15
"""How often a silent stream says that it is still there."""
RETRIED_SUBMIT_SECONDS = 20.0
PATIENCE_SECONDS = 300.0
"""How long a follower bears a service that is away."""
PAGE = 200
_LOG_PAUSE_SECONDS = 0.5

LIVE_STATES = tuple(str(state) for state in State if state not in TERMINAL)

M = TypeVar("M", bound=BaseModel)
_FILE_NAME = re.compile(r"filename\*=UTF-8''([^;]+)|filename=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """A stretch of a log; ask with ``offset=next_offset`` for what follows."""

    content: bytes
    next_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """The executed notebook, whole or as far as it is."""

    name: str
    content: bytes


class AsyncClient:
    """One site, one person. Every call raises the classes of ``hub.errors``.

    >>> async with AsyncClient.from_environment() as carrel:
    ...     job = await carrel.submit(JobIn(group="cs101", notebook=…))
    ...     async for change in carrel.follow(job.id):
    ...         print(change)
    """

    def __init__(
        self, url: str, token: str, *, timeout: float = 30.0, transport: Transport | None = None
    ) -> None:
        """``url``: any address of the site."""
        self.site = Site.at(url)
        self._transport = transport or LoopTransport(self.site, token, timeout)

    @classmethod
    def from_environment(cls, url: str | None = None) -> Self:
        """The client of whoever runs this: see ``credentials_here``."""
        found = credentials_here(url)
        return cls(found.url, found.token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    # -- people and pool ------------------------------------------------------------------

    async def me(self) -> MeOut:
        return await self._get("me", MeOut)

    async def groups(self) -> list[GroupOut]:
        """Those that one may use, with the limits that hold now."""
        return (await self._get("groups", GroupsOut)).groups

    async def pool(self) -> PoolOut:
        return await self._get("pool", PoolOut)

    async def queue(self) -> QueueOut:
        """What waits, in order, with reasons."""
        return await self._get("queue", QueueOut)

    async def usage(self) -> UsageReport:
        return await self._get("usage", UsageReport)

    # -- requests -------------------------------------------------------------------------

    async def submit(self, job: JobIn) -> RequestOut:
        """Submit a job.

        With an idempotency key it is sent again where the answer got lost: the service
        knows the key and answers with the first request.
        """
        # What was left at its default is not sent, so that an older service understands it.
        body = {"kind": job.kind} | job.model_dump(mode="json", exclude_unset=True)
        call = Call(method="POST", path="requests", json=body)
        patience = Patience(seconds=RETRIED_SUBMIT_SECONDS)
        while True:
            try:
                return self._read(await self._transport.send(call), RequestOut)
            except Unavailable as error:
                # Nothing was ever there: a wrong address wants its answer at once.
                if not (job.idempotency_key and self._transport.reached):
                    raise
                pause = patience.lost(error, self._transport.now())
            await self._transport.pause(pause)

    async def page(
        self,
        *,
        kind: str | None = None,
        states: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        mine: bool = True,
        limit: int = PAGE,
        cursor: str = "",
    ) -> RequestsOut:
        """One page, newest first; ``next`` of it is the ``cursor`` of the following one.

        Without ``mine`` also those of groups that one teaches. Of several ``states`` any
        fits; of several ``labels`` each must.
        """
        query: dict[str, str | int | list[str]] = {"limit": limit, "mine": str(mine).lower()}
        if wanted := sorted(states):
            query["state"] = wanted
        if labels:
            query["label"] = [f"{key}={value}" for key, value in sorted(labels.items())]
        query |= {
            name: value
            for name, value in (("kind", kind), ("owner", owner), ("cursor", cursor))
            if value
        }
        return self._read(
            await self._transport.send(Call(method="GET", path="requests", query=query)),
            RequestsOut,
        )

    async def requests(
        self,
        *,
        kind: str | None = None,
        states: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        mine: bool = True,
        limit: int | None = PAGE,
    ) -> list[RequestOut]:
        """The newest ones as ``page`` finds them, over as many pages as it takes.

        ``limit=None`` is for all there are.
        """
        wanted = tuple(states)
        found: list[RequestOut] = []
        cursor = ""
        while limit is None or len(found) < limit:
            left = PAGE if limit is None else min(PAGE, limit - len(found))
            page = await self.page(
                kind=kind,
                states=wanted,
                labels=labels,
                owner=owner,
                mine=mine,
                limit=left,
                cursor=cursor,
            )
            found += page.requests
            cursor = page.next
            if not cursor:
                break
        return found

    async def request(self, request_id: str) -> RequestOut:
        return await self._get(f"requests/{_segment(request_id)}", RequestOut)

    async def cancel(self, request_id: str) -> RequestOut:
        """Ask it to end; one that has ended stays as it is."""
        call = Call(method="DELETE", path=f"requests/{_segment(request_id)}")
        return self._read(await self._transport.send(call), RequestOut)

    async def log(self, request_id: str, offset: int = 0) -> LogPart:
        """What it printed, from a byte offset on."""
        path = f"requests/{_segment(request_id)}/log"
        answer = await self._transport.send(Call(method="GET", path=path, query={"offset": offset}))
        until = answer.headers.get("X-Carrel-Offset", "")
        return LogPart(
            content=answer.content,
            next_offset=int(until) if until.isdecimal() else offset + len(answer.content),
        )

    async def whole_log(self, request_id: str) -> AsyncGenerator[bytes, None]:
        """Everything that it has printed so far, in parts."""
        part = await self.log(request_id)
        while part.content:
            yield part.content
            part = await self.log(request_id, part.next_offset)

    async def output(self, request_id: str) -> OutputFile:
        """The output notebook; NotFound before there is one."""
        path = f"requests/{_segment(request_id)}/output"
        answer = await self._transport.send(Call(method="GET", path=path))
        named = _FILE_NAME.search(answer.headers.get("Content-Disposition", ""))
        name = (unquote(named[1]) if named[1] else named[2]) if named else f"{request_id}.ipynb"
        return OutputFile(name=name, content=answer.content)

    async def files(self, request_id: str) -> FilesOut:
        """What it put into ``$CARREL_OUTPUT_DIR``."""
        return await self._get(f"requests/{_segment(request_id)}/files", FilesOut)

    async def file(self, request_id: str, name: str) -> AsyncGenerator[bytes, None]:
        """The content of one of its files, in parts."""
        inner = "/".join(_segment(part) for part in name.split("/"))
        call = Call(
            method="GET",
            path=f"requests/{_segment(request_id)}/files/{inner}",
            headers={"Accept": "*/*"},
        )
        async with aclosing(self._transport.parts(call)) as parts:
            async for part in parts:
                yield part

    # -- sessions -------------------------------------------------------------------------

    async def start_session(self, server: str, options: SessionIn) -> None:
        """Ask for a session; ``server`` "" is the default one."""
        path = f"sessions/{_segment(server or '-')}"
        await self._transport.send(Call(method="POST", path=path, json=options.model_dump()))

    async def stop_session(self, server: str) -> None:
        path = f"sessions/{_segment(server or '-')}"
        await self._transport.send(Call(method="DELETE", path=path))

    # -- following ------------------------------------------------------------------------

    async def follow(
        self, request_id: str, after: int = 0
    ) -> AsyncGenerator[RequestOut | EventOut, None]:
        """Yield the request whenever it changes, and its events, until it has ended.

        Goes on through restarts of the service and of the proxy; nothing is yielded twice.
        Closing the client (from another thread or task) ends it too.

        Raises:
            Unavailable: the service stayed away for ``PATIENCE_SECONDS``.
        """
        last: RequestOut | None = None
        patience = Patience(seconds=PATIENCE_SECONDS)
        while not self._transport.closed:
            try:
                async with aclosing(self._stream(request_id, after)) as messages:
                    async for message in messages:
                        patience.well()
                        if message.event == "end":
                            return
                        if message.event != "status":
                            event = self._parse(message, EventOut)
                            after = max(after, event.id)
                            yield event
                        elif (now := self._parse(message, RequestOut)) != last:
                            last = now
                            yield now
                pause = patience.pause()
            except Unavailable as error:
                pause = patience.lost(error, self._transport.now())
            await self._transport.pause(pause)

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yield at once, and whenever what one may see of pool, queue and requests has changed.

        Goes on through restarts, as ``follow`` does. Never ends by itself.

        Raises:
            Unavailable: the service stayed away for ``PATIENCE_SECONDS``.
        """
        patience = Patience(seconds=PATIENCE_SECONDS)
        while not self._transport.closed:
            try:
                async with aclosing(self._messages("events")) as messages:
                    async for message in messages:
                        patience.well()
                        if message.event == "changed":
                            yield None
                pause = patience.pause()
            except Unavailable as error:
                pause = patience.lost(error, self._transport.now())
            await self._transport.pause(pause)

    async def follow_log(self, request_id: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield what it prints as it comes, until it has ended and everything was read."""
        patience = Patience(seconds=PATIENCE_SECONDS)
        while True:
            try:
                ended = (await self.request(request_id)).ended
                part = await self.log(request_id, offset)
            except Unavailable as error:
                await self._transport.pause(patience.lost(error, self._transport.now()))
                continue
            patience.well()
            offset = part.next_offset
            if part.content:
                yield part.content
            elif ended:
                return
            else:
                await self._transport.pause(_LOG_PAUSE_SECONDS)

    def _stream(self, request_id: str, after: int) -> AsyncGenerator[Message, None]:
        return self._messages(f"requests/{_segment(request_id)}/events", after)

    async def _messages(self, path: str, after: int = 0) -> AsyncGenerator[Message, None]:
        """One connection's worth."""
        resume = {"Last-Event-ID": str(after)} if after else {}
        call = Call(
            method="GET",
            path=path,
            query={"after": after} if after else {},
            headers={"Accept": "text/event-stream"} | resume,
            silence=3 * KEEP_ALIVE_SECONDS,
        )
        parser = Parser()
        async with aclosing(self._transport.lines(call)) as lines:
            async for line in lines:
                if message := parser.feed(line):
                    yield message

    # -- reading --------------------------------------------------------------------------

    async def _get(self, path: str, model: type[M]) -> M:
        return self._read(await self._transport.send(Call(method="GET", path=path)), model)

    def _read(self, answer: Answer, model: type[M]) -> M:
        return self._understood(answer.content, model.model_validate_json)

    def _parse(self, message: Message, model: type[M]) -> M:
        return self._understood(message.data, model.model_validate_json)

    def _understood(self, content: str | bytes, read: Callable[[str | bytes], M]) -> M:
        try:
            return read(content)
        except ValidationError as error:
            raise no_carrel(
                self.site.base, "what answered there does not speak Carrel's language"
            ) from error


def _segment(text: str) -> str:
    """One path segment of a URL, whatever somebody typed."""
    return quote(text, safe="")
