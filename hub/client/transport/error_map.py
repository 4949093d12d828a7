"""An answer that is no success, as the error class that the service raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus

from pydantic import ValidationError

from ...errors import (
    CarrelError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Refused,
    TooLarge,
    Unavailable,
)
from ...schemas import ErrorBody, Out

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
AWAY = frozenset({502, 503, 504})
"""What a proxy answers for a service that is restarting."""

_BY_STATUS: dict[int, type[CarrelError]] = {
    400: InvalidInput,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: Refused,
    424: Unavailable,
} | dict.fromkeys(AWAY, Unavailable)


def _classes(base: type[CarrelError]) -> Iterator[type[CarrelError]]:
    yield base
    for derived in base.__subclasses__():
        yield from _classes(derived)


class _Problem(Out):
    """A problem after RFC 9457."""

    detail: str
    code: str
    accepted: str = ""
    field: str = ""


class _Older(Out):
    """What a service says that does not know that form yet."""

    error: ErrorBody


def failure(url: str, status: int, body: bytes) -> CarrelError:
    """The error behind an answer, with the service's own sentence where it sent one."""
    error, field = _said(body)
    if error is None:
        return _unspoken(url, status)
    by_code = {each.code: each for each in _classes(CarrelError)}
    kind = by_code.get(error.code) or _BY_STATUS.get(status, CarrelError)
    accepted = error.accepted
    if status == HTTPStatus.UNAUTHORIZED:
        # The service speaks to programs of all kinds; whoever reads this has a command for it.
        accepted = f"Sign in again with: carrel login {url}"
    return kind(error.message, accepted=accepted, field=field)


def _said(body: bytes) -> tuple[ErrorBody | None, str]:
    """What was wrong, and in which field."""
    try:
        problem = _Problem.model_validate_json(body)
        error = ErrorBody(code=problem.code, message=problem.detail, accepted=problem.accepted)
        return error, problem.field
    except ValidationError:
        pass  # the older form, or somebody else's words
    try:
        return _Older.model_validate_json(body).error, ""
    except ValidationError:
        return None, ""


def _unspoken(url: str, status: int) -> CarrelError:
    """Somebody else answered: the proxy, the hub, or no Carrel at all."""
    if status in AWAY:
        return Unavailable(
            f"The Carrel at {url} does not answer at the moment (status {status}).",
            accepted="It may be restarting: try again in a moment.",
        )
    if status in {401, 403}:
        return Forbidden(
            f"The Carrel at {url} does not accept this token.",
            accepted=f"Sign in again with: carrel login {url}",
        )
    if status in {301, 302, 303, 307, 308, 404, 405, 424}:
        return no_carrel(url, f"what is there answered with status {status}")
    return _BY_STATUS.get(status, CarrelError)(
        f"The Carrel at {url} answered with status {status} and no explanation."
    )


def no_carrel(url: str, why: str) -> Unavailable:
    """Also while the proxy restarts without its routes, so that followers try again."""
    return Unavailable(
        f"No Carrel answers at {url}: {_ERRNO.sub('', why)}.",
        accepted="Is it running? The address is the one that you open in the browser.",
    )
