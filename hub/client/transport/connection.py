"""The connection to one site for one user: send calls, and read responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue, ValidationError

from ...errors import InvalidArgument, Unavailable
from .calls import Call, HttpAnswer, Transport
from .credentials import credentials_here
from .error_map import no_carrel
from .retry import RetryPolicy
from .site_url import SiteUrl
from .sse import Message
from .transports import LoopTransport

M = TypeVar("M", bound=BaseModel)
REPEATED_SECONDS = 20.0


class Connection:
    """The base of ``AsyncClient``: sends its calls."""

    def __init__(
        self, url: str, token: str, *, timeout: float = 30.0, transport: Transport | None = None
    ) -> None:
        """``url``: any address of the site."""
        self.site = SiteUrl.at(url)
        self._transport = transport or LoopTransport(self.site, token, timeout)

    @classmethod
    def from_environment(cls, url: str | None = None) -> Self:
        """Return the client of the current user: see ``credentials_here``."""
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

    async def send(self, call: Call) -> HttpAnswer:
        """Send any other call."""
        return await self._transport.send(call)

    async def _get(self, path: str, model: type[M]) -> M:
        return await self._read_call(Call(method="GET", path=path), model)

    async def _read_call(self, call: Call, model: type[M]) -> M:
        return self._read(await self._transport.send(call), model)

    async def _post(
        self, path: str, model: type[M], body: Mapping[str, JsonValue] | None = None
    ) -> M:
        return await self._read_call(Call(method="POST", path=path, json=body), model)

    async def _repeated(self, call: Call, model: type[M]) -> M:
        """Send a call that is safe to repeat: retried after a lost connection."""
        patience = RetryPolicy(seconds=REPEATED_SECONDS)
        while True:
            try:
                return self._read(await self._transport.send(call), model)
            except Unavailable as error:
                # No retry if nothing ever responded: the address may be wrong.
                if not self._transport.reached:
                    raise
                pause = patience.lost(error, self._transport.now())
            await self._transport.pause(pause)

    def _read(self, answer: HttpAnswer, model: type[M]) -> M:
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


def segment(text: str) -> str:
    """Quote text as one path segment of a URL.

    Raises:
        InvalidArgument: addresses cannot contain it, since it is empty, a dot or no Unicode text.
    """
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if quoted in {"", ".", ".."}:
        raise InvalidArgument(f"{text[:80]!r} is not a name or an id.")
    return quoted
