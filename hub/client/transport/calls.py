"""Calls, responses and the ``Transport`` protocol; performs no I/O.

A transport sends a ``Call`` and returns an ``HttpResponse``; one implementation blocks a thread,
another runs in an event loop. The code above the transport is the same for both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import httpx

from ...errors import CarrelError, InvalidArgument, InvalidInput, Unavailable
from ...messages.programs import is_program_token
from .error_map import AWAY, failure, site_unreachable
from .site_url import SiteUrl

Query: TypeAlias = Mapping[str, str | int | Sequence[str]]

RELEASE_SECONDS = 3600.0
"""Timeout of a release, which the grading sandbox validates before the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request.

    Attributes:
        path: below ``…/api/v1/``, with its segments quoted.
        json: the body; None for none.
        form: the fields of a form body.
        silence: seconds without data after which the connection counts as lost; None for the
            timeout of the client.
    """

    method: str
    path: str
    query: Query = field(default_factory=dict)
    json: object = field(default=None, repr=False)
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    silence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A successful response; all other responses raise an error."""

    headers: Mapping[str, str]
    content: bytes


class Transport(Protocol):
    """Sends calls; raises only the classes of ``hub.errors``.

    Attributes:
        reached: whether a service, or a proxy in front of it, has ever responded.
        closed: no further call is possible.
    """

    site: SiteUrl
    reached: bool

    @property
    def closed(self) -> bool: ...

    async def send(self, call: Call) -> HttpResponse: ...

    def lines(self, call: Call) -> AsyncGenerator[str, None]:
        """Yield the lines of a response as they arrive."""

    def parts(self, call: Call) -> AsyncGenerator[bytes, None]:
        """Yield the content of a response as it arrives."""

    async def pause(self, seconds: float) -> None: ...

    def now(self) -> float:
        """Return the time of a monotonic clock, in seconds."""

    async def close(self) -> None: ...


def build_request(http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    """Return the HTTP request of a call.

    Raises:
        InvalidArgument: HTTP or JSON cannot represent a value of the call.
    """
    timeout = http.timeout
    if call.silence is not None:
        timeout = httpx.Timeout(timeout.connect, read=call.silence)
    try:
        return http.build_request(
            call.method,
            call.path,
            params={name: _parameter(value) for name, value in call.query.items()},
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


def _parameter(value: str | int | Sequence[str]) -> str | int | list[str]:
    return value if isinstance(value, str | int) else list(value)


def successful(site: SiteUrl, response: httpx.Response) -> HttpResponse:
    """Return a response that was read completely; raises the error of an error response."""
    if not response.is_success:
        sent = response.request.headers.get("Authorization", "")
        program = is_program_token(sent.removeprefix("token "))
        raise failure(site.base, response.status_code, response.content, program=program)
    return HttpResponse(headers=response.headers, content=response.content)


def is_from_site(response: httpx.Response) -> bool:
    """Whether the response shows that a Carrel, or its proxy, is at this address."""
    return response.status_code in AWAY or response.is_success


def connection_error(site: SiteUrl, error: httpx.TransportError) -> CarrelError:
    """Return the error for a connection that failed or was lost."""
    if isinstance(error, httpx.ConnectError):
        return site_unreachable(site.base, str(error))
    return Unavailable(
        f"The connection to Carrel at {site.base} was lost: {str(error) or type(error).__name__}.",
        accepted="It may be restarting: try again in a moment.",
    )


def client_options(site: SiteUrl, token: str) -> tuple[str, dict[str, str]]:
    """Return the base URL and the headers of all calls to a site.

    Args:
        token: empty for calls that need no sign-in.

    Raises:
        InvalidInput: no header can contain the token.
    """
    if not (token.isascii() and token.isprintable()):
        raise InvalidInput(
            f"The token for {site.base} contains characters that are not allowed in a token.",
            accepted=f"Sign in again with: carrel login {site.base}",
        )
    signed_in = {"Authorization": f"token {token}"} if token else {}
    return f"{site.service}/api/v1/", {"Accept": "application/json", **signed_in}
