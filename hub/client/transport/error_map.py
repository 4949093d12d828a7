"""Map error responses to the error classes that the service raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urljoin

from pydantic import ValidationError

from ...errors import (
    CarrelError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Refused,
    TooLarge,
    TooManyCalls,
    Unavailable,
)
from ...messages.programs import HOW_TO_RENEW
from ...schemas import ErrorBody, Out

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
AWAY = frozenset({502, 503, 504})
"""Status codes of a proxy while the service restarts."""

_BY_STATUS: dict[int, type[CarrelError]] = {
    400: InvalidInput,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: TooLarge,
    422: Refused,
    424: Unavailable,
    429: TooManyCalls,
} | dict.fromkeys(AWAY, Unavailable)


def _classes(base: type[CarrelError]) -> Iterator[type[CarrelError]]:
    """Yield the classes with a code of their own: others inherit the code of what they refine."""
    if "code" in vars(base):
        yield base
    for derived in base.__subclasses__():
        yield from _classes(derived)


class _Problem(Out):
    """A problem as in RFC 9457."""

    detail: str
    code: str
    accepted: str = ""
    field: str = ""
    type: str = ""


class _LegacyError(Out):
    """The error format of older services."""

    error: ErrorBody


def failure(url: str, status: int, body: bytes, *, program: bool = False) -> CarrelError:
    """Return the error of a response, with the service's own message if it has one.

    Args:
        program: whether the call had the token of a program, which cannot sign in again.
    """
    again = HOW_TO_RENEW if program else f"Sign in again with: carrel login {url}"
    problem = _service_error(body)
    if problem is None:
        return _foreign_error(url, status, again)
    by_code = {error_class.code: error_class for error_class in _classes(CarrelError)}
    kind = by_code.get(problem.code) or _BY_STATUS.get(status, CarrelError)
    accepted = problem.accepted
    if status == HTTPStatus.UNAUTHORIZED:
        # The service's hint is for all programs; users of the command line need a command.
        accepted = again
    error = kind(problem.detail, accepted=accepted, field=problem.field)
    if problem.type.startswith("/"):
        error.help_url = urljoin(url, problem.type)
    return error


def _service_error(body: bytes) -> _Problem | None:
    """Return the error in a response of Carrel; None for others."""
    try:
        return _Problem.model_validate_json(body)
    except ValidationError:
        pass  # the older format, or not from Carrel
    try:
        error = _LegacyError.model_validate_json(body).error
    except ValidationError:
        return None
    return _Problem(detail=error.message, code=error.code, accepted=error.accepted)


def _foreign_error(url: str, status: int, again: str) -> CarrelError:
    """Return the error for a response that is not from Carrel: from the proxy, JupyterHub or
    another server.
    """
    if status in AWAY:
        return Unavailable(
            f"Carrel at {url} is not responding (status {status}).",
            accepted="It may be restarting: try again in a moment.",
        )
    if status in {401, 403}:
        return Forbidden(f"Carrel at {url} does not accept this token.", accepted=again)
    if status in {301, 302, 303, 307, 308, 404, 405, 424}:
        return site_unreachable(url, f"the server there answered with status {status}")
    return _BY_STATUS.get(status, CarrelError)(
        f"Carrel at {url} answered with status {status} without a message."
    )


def site_unreachable(url: str, why: str) -> Unavailable:
    """Return the error for an address where Carrel does not answer.

    It is Unavailable because the proxy also answers like this while it restarts without its
    routes: followers then retry.
    """
    return Unavailable(
        f"No Carrel answers at {url}: {_ERRNO.sub('', why)}.",
        accepted="Check that it is running, and use the address that you open in the browser.",
    )
