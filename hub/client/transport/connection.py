"""Send calls to one site for one user, and validate the responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue, ValidationError

from ...errors import InvalidArgument, Unavailable
from .calls import Call, HttpResponse, Transport
from .credentials import current_credentials
from .error_map import site_unreachable
from .retry import RetryPolicy
from .site_url import SiteUrl
from .sse import Message
from .transports import LoopTransport

M = TypeVar("M", bound=BaseModel)
RETRY_SECONDS = 20.0
"""How long calls that are safe to repeat are retried."""


class Connection:
    """Base class of the clients; sends their calls.

    Args:
        url: any address of the site.
        timeout: of a call, in seconds.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float = 30.0, transport: Transport | None = None
    ) -> None:
        self.site = SiteUrl.at(url)
        self._transport = transport or LoopTransport(self.site, token, timeout)

    @classmethod
    def from_environment(cls, url: str | None = None) -> Self:
        """Return the client of the current user: see ``current_credentials``."""
        credentials = current_credentials(url)
        return cls(credentials.url, credentials.token)

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

    async def send(self, call: Call) -> HttpResponse:
        """Send a call that has no method of its own."""
        return await self._transport.send(call)

    async def _get(self, path: str, model: type[M]) -> M:
        return await self._read_call(Call(method="GET", path=path), model)

    async def _read_call(self, call: Call, model: type[M]) -> M:
        return self._read(await self._transport.send(call), model)

    async def _post(
        self, path: str, model: type[M], body: Mapping[str, JsonValue] | None = None
    ) -> M:
        return await self._read_call(Call(method="POST", path=path, json=body), model)

    async def _send_repeatable(self, call: Call, model: type[M]) -> M:
        """Send a call that is safe to repeat; retry it after a lost connection."""
        retries = RetryPolicy(seconds=RETRY_SECONDS)
        while True:
            try:
                return self._read(await self._transport.send(call), model)
            except Unavailable as error:
                # Without any response so far, the address may be wrong.
                if not self._transport.reached:
                    raise
                pause = retries.failed(error, self._transport.now())
            await self._transport.pause(pause)

    def _read(self, response: HttpResponse, model: type[M]) -> M:
        return self._validated(response.content, model.model_validate_json)

    def _parse(self, message: Message, model: type[M]) -> M:
        return self._validated(message.data, model.model_validate_json)

    def _validated(self, content: str | bytes, read: Callable[[str | bytes], M]) -> M:
        try:
            return read(content)
        except ValidationError as error:
            raise site_unreachable(
                self.site.base, "the response is not in the format of Carrel's API"
            ) from error


def segment(text: str) -> str:
    """Quote text as one path segment of a URL.

    Raises:
        InvalidArgument: the text is empty, ``.``, ``..`` or not Unicode, and cannot be a segment.
    """
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if quoted in {"", ".", ".."}:
        raise InvalidArgument(f"{text[:80]!r} is not a name or an id.")
    return quoted
