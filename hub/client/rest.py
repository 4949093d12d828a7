"""The service's REST API as plain typed calls, and its event streams as iterators."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote, unquote

import httpx
from pydantic import BaseModel, ValidationError

from ..errors import CarrelError, Unavailable
from ..scheduling.lifecycle import TERMINAL, State
from ..wire import (
    EventOut,
    JobIn,
    MeOut,
    PoolOut,
    RequestOut,
    RequestsOut,
    SessionIn,
    UsageReport,
)
from .credentials import CredentialsFile
from .eventstream import Parser
from .failures import AWAY, failure, no_carrel
from .site import Site

KEEP_ALIVE_SECONDS = 15
"""How often a silent stream says that it is still there."""
RETRIED_SUBMIT_SECONDS = 20.0
PATIENCE_SECONDS = 300.0
"""How long a follower bears a service that is away."""
LONGEST_PAUSE_SECONDS = 2.0

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


class Client:
    """One site, one person. Every call raises the classes of ``hub.errors``.

    >>> with Client.from_environment() as carrel:
    ...     job = carrel.submit(JobIn(group="cs101", notebook=…))
    ...     for change in carrel.follow(job.id):
    ...         print(change)
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``url``: any address of the site. ``sleep`` and ``clock`` time the retries."""
        self.site = Site.at(url)
        self._sleep = sleep
        self._clock = clock
        self._reached = False
        self._http = httpx.Client(
            base_url=f"{self.site.service}/api/v1/",
            headers={"Authorization": f"token {token}", "Accept": "application/json"},
            timeout=timeout,
            trust_env=self.site.trusts_environment,
        )

    @classmethod
    def from_environment(cls, url: str | None = None) -> Self:
        """The client of whoever runs this.

        1. ``CARREL_TOKEN`` with ``url``, ``CARREL_URL`` or the default site
        2. inside a session: ``CARREL_URL`` and ``JUPYTERHUB_API_TOKEN``
        3. elsewhere: what ``carrel login`` stored for ``url`` or the default site

        Raises:
            Forbidden: nobody is signed in; says how to.
        """
        here = os.environ.get("CARREL_URL")
        session_token = os.environ.get("JUPYTERHUB_API_TOKEN")
        if token := os.environ.get("CARREL_TOKEN"):
            address = url or here or CredentialsFile.of_this_account().find().url
            return cls(address, token)
        same = not url or (here and Site.at(url) == Site.at(here))
        if here and session_token and same:
            return cls(here, session_token)
        found = CredentialsFile.of_this_account().find(url or here)
        return cls(found.url, found.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # -- people and pool ------------------------------------------------------------------

    def me(self) -> MeOut:
        return self._get("me", MeOut)

    def pool(self) -> PoolOut:
        return self._get("pool", PoolOut)

    def usage(self) -> UsageReport:
        return self._get("usage", UsageReport)

    # -- requests -------------------------------------------------------------------------

    def submit(self, job: JobIn) -> RequestOut:
        """Submit a job.

        With an idempotency key it is sent again where the answer got lost: the service
        knows the key and answers with the first request.
        """
        body = job.model_dump(mode="json")
        deadline = self._clock() + RETRIED_SUBMIT_SECONDS
        pauses = _pauses()
        while True:
            try:
                return self._read(self._send("POST", "requests", json=body), RequestOut)
            except Unavailable:
                # Nothing was ever there: a wrong address wants its answer at once.
                if not (job.idempotency_key and self._reached) or self._clock() > deadline:
                    raise
                self._sleep(next(pauses))

    def requests(
        self,
        *,
        kind: str | None = None,
        states: Iterable[str] = (),
        mine: bool = True,
        limit: int = 200,
    ) -> list[RequestOut]:
        """Newest first. Without ``mine`` also those of groups that one teaches."""
        query: dict[str, str | int | list[str]] = {"limit": limit, "mine": str(mine).lower()}
        if kind:
            query["kind"] = kind
        if wanted := sorted(states):
            query["state"] = wanted
        return self._read(self._send("GET", "requests", params=query), RequestsOut).requests

    def request(self, request_id: str) -> RequestOut:
        return self._get(f"requests/{_segment(request_id)}", RequestOut)

    def cancel(self, request_id: str) -> RequestOut:
        """Ask it to end; one that has ended stays as it is."""
        return self._read(self._send("DELETE", f"requests/{_segment(request_id)}"), RequestOut)

    def log(self, request_id: str, offset: int = 0) -> LogPart:
        """What it printed, from a byte offset on."""
        answer = self._send(
            "GET", f"requests/{_segment(request_id)}/log", params={"offset": offset}
        )
        until = answer.headers.get("X-Carrel-Offset", "")
        return LogPart(
            content=answer.content,
            next_offset=int(until) if until.isdecimal() else offset + len(answer.content),
        )

    def whole_log(self, request_id: str) -> Iterator[bytes]:
        """Everything that it has printed so far, in parts."""
        part = self.log(request_id)
        while part.content:
            yield part.content
            part = self.log(request_id, part.next_offset)

    def output(self, request_id: str) -> OutputFile:
        """The output notebook; NotFound before there is one."""
        answer = self._send("GET", f"requests/{_segment(request_id)}/output")
        named = _FILE_NAME.search(answer.headers.get("Content-Disposition", ""))
        name = (unquote(named[1]) if named[1] else named[2]) if named else f"{request_id}.ipynb"
        return OutputFile(name=name, content=answer.content)

    # -- sessions -------------------------------------------------------------------------

    def start_session(self, server: str, options: SessionIn) -> None:
        """Ask for a session; ``server`` "" is the default one."""
        self._send("POST", f"sessions/{_segment(server or '-')}", json=options.model_dump())

    def stop_session(self, server: str) -> None:
        self._send("DELETE", f"sessions/{_segment(server or '-')}")

    # -- following ------------------------------------------------------------------------

    def follow(self, request_id: str, after: int = 0) -> Iterator[RequestOut | EventOut]:
        """Yield the request whenever it changes, and its events, until it has ended.

        Goes on through restarts of the service and of the proxy; nothing is yielded twice.
        Closing the client (from another thread) ends it too.

        Raises:
            Unavailable: the service stayed away for ``PATIENCE_SECONDS``.
        """
        last: RequestOut | None = None
        away_since: float | None = None
        pauses = _pauses()
        while not self._http.is_closed:
            try:
                for item in self._stream(request_id, after):
                    away_since, pauses = None, _pauses()
                    if item is None:
                        return
                    if isinstance(item, EventOut):
                        after = max(after, item.id)
                        yield item
                    elif item != last:
                        last = item
                        yield item
            except Unavailable:
                away_since = away_since or self._clock()
                if self._clock() - away_since > PATIENCE_SECONDS:
                    raise
            self._sleep(next(pauses))

    def follow_log(self, request_id: str) -> Iterator[bytes]:
        """Yield what it prints as it comes, until it has ended and everything was read."""
        offset = 0
        away_since: float | None = None
        pauses = _pauses()
        while True:
            try:
                ended = self.request(request_id).ended
                part = self.log(request_id, offset)
            except Unavailable:
                away_since = away_since or self._clock()
                if self._clock() - away_since > PATIENCE_SECONDS:
                    raise
                self._sleep(next(pauses))
                continue
            away_since, pauses = None, _pauses()
            offset = part.next_offset
            if part.content:
                yield part.content
            elif ended:
                return
            else:
                self._sleep(0.5)

    def _stream(self, request_id: str, after: int) -> Iterator[RequestOut | EventOut | None]:
        """One connection's worth; None stands for the end of the request."""
        path = f"requests/{_segment(request_id)}/events"
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(after)} if after else {})
        timeout = httpx.Timeout(self._http.timeout.connect, read=3 * KEEP_ALIVE_SECONDS)
        parser = Parser()
        try:
            with self._http.stream(
                "GET", path, headers=headers, params={"after": after}, timeout=timeout
            ) as answer:
                if not answer.is_success:
                    answer.read()
                    raise failure(self.site.base, answer.status_code, answer.content)
                for line in answer.iter_lines():
                    if message := parser.feed(line):
                        match message.event:
                            case "end":
                                yield None
                                return
                            case "status":
                                yield RequestOut.model_validate_json(message.data)
                            case _:
                                yield EventOut.model_validate_json(message.data)
        except httpx.TransportError as error:
            raise self._lost(error) from error

    # -- one call -------------------------------------------------------------------------

    def _get(self, path: str, model: type[M]) -> M:
        return self._read(self._send("GET", path), model)

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str | int | list[str]] | dict[str, int] | None = None,
        json: object = None,
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, params=params, json=json)
        except httpx.ConnectError as error:
            raise no_carrel(self.site.base, str(error)) from error
        except httpx.TransportError as error:
            self._reached = True
            raise self._lost(error) from error
        self._reached = self._reached or answer.status_code in AWAY or answer.is_success
        if not answer.is_success:
            raise failure(self.site.base, answer.status_code, answer.content)
        return answer

    def _read(self, answer: httpx.Response, model: type[M]) -> M:
        try:
            return model.model_validate_json(answer.content)
        except ValidationError as error:
            raise no_carrel(
                self.site.base, "what answered there does not speak Carrel's language"
            ) from error

    def _lost(self, error: httpx.TransportError) -> CarrelError:
        return Unavailable(
            f"The connection to the Carrel at {self.site.base} was lost: "
            f"{str(error) or type(error).__name__}.",
            accepted="It may be restarting: try again in a moment.",
        )


def _segment(text: str) -> str:
    """One path segment of a URL, whatever somebody typed."""
    return quote(text, safe="")


def _pauses() -> Iterator[float]:
    pause = 0.1
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
