"""Calls, responses and transports, without any input or output.

A transport sends a ``Call`` and returns an ``HttpAnswer``; there is one for threads and one for an
event loop. Everything else that the client knows about the service is above it, once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import httpx

from ...errors import CarrelError, InvalidArgument, InvalidInput, Unavailable
from .error_map import AWAY, failure, no_carrel
from .site_url import SiteUrl

Query: TypeAlias = Mapping[str, str | int | Sequence[str]]


RELEASE_SECONDS = 3600.0
"""A release is validated in the grading sandbox before the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request.

    Attributes:
        path: below ``…/api/v1/``, with its segments quoted.
        json: the body; None for none.
        form: the fields of a form body.
        silence: seconds without data after which the connection counts as lost; None for the
            time-out of the client.
    """

    method: str
    path: str
    query: Query = field(default_factory=dict)
    json: object = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    silence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """A successful response; all others raise."""

    headers: Mapping[str, str]
    content: bytes


class Transport(Protocol):
    """Sends calls. Raises the classes of ``hub.errors`` and nothing of the library below.

    Attributes:
        reached: whether a service, or a proxy in front of it, has ever responded.
        closed: no further call is possible.
    """

    site: SiteUrl
    reached: bool

    @property
    def closed(self) -> bool: ...

    async def send(self, call: Call) -> HttpAnswer: ...

    def lines(self, call: Call) -> AsyncGenerator[str, None]:
        """Yield the lines of a response as they arrive."""

    def parts(self, call: Call) -> AsyncGenerator[bytes, None]:
        """Yield the content of a response as it arrives."""

    async def pause(self, seconds: float) -> None: ...

    def now(self) -> float:
        """A monotonic clock."""

    async def close(self) -> None: ...


def built(http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    """Raises InvalidArgument if HTTP or JSON cannot carry a value of the call."""
    timeout = http.timeout
    if call.silence is not None:
        timeout = httpx.Timeout(timeout.connect, read=call.silence)
    try:
        return http.build_request(
            call.method,
            call.path,
            params={name: _plain(value) for name, value in call.query.items()},
            json=call.json,
            data=call.form,
            headers=dict(call.headers),
            timeout=timeout,
        )
    except UnicodeError:
        raise InvalidArgument("A value contains characters that are not Unicode text.") from None
    except httpx.InvalidURL:
        raise InvalidArgument("A name, an id or a filter is too long for an address.") from None
    except ValueError:
        raise InvalidArgument(
            "A number is infinite or not a number.", accepted="Send finite numbers."
        ) from None


def _plain(value: str | int | Sequence[str]) -> str | int | list[str]:
    return value if isinstance(value, str | int) else list(value)


def settled(site: SiteUrl, answer: httpx.Response) -> HttpAnswer:
    """Return a complete response, or raise the error that it stands for."""
    if not answer.is_success:
        raise failure(site.base, answer.status_code, answer.content)
    return HttpAnswer(headers=answer.headers, content=answer.content)


def shows_a_service(answer: httpx.Response) -> bool:
    """Return whether Carrel sent this, not a proxy that waits for it."""
    return answer.status_code in AWAY or answer.is_success


def broken(site: SiteUrl, error: httpx.TransportError) -> CarrelError:
    """Return the error for a connection that failed or was lost."""
    if isinstance(error, httpx.ConnectError):
        return no_carrel(site.base, str(error))
    return Unavailable(
        f"The connection to the Carrel at {site.base} was lost: "
        f"{str(error) or type(error).__name__}.",
        accepted="It may be restarting: try again in a moment.",
    )


def options_for(site: SiteUrl, token: str) -> tuple[str, dict[str, str]]:
    """Base URL and headers of all calls to a site.

    Raises:
        InvalidInput: no header can contain the token.
    """
    if not (token.isascii() and token.isprintable()):
        raise InvalidInput(
            f"The token for {site.base} contains characters that no token has.",
            accepted=f"Sign in again with: carrel login {site.base}",
        )
    return (
        f"{site.service}/api/v1/",
        {"Authorization": f"token {token}", "Accept": "application/json"},
    )
