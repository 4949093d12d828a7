"""Bodies of errors."""

from __future__ import annotations

from .base import Out

NO_TYPE = "about:blank"
"""The type of a problem without a page about it."""


class ErrorBody(Out):
    code: str
    message: str
    accepted: str = ""


class ErrorOut(Out):
    """Problem details (RFC 9457); ``error`` repeats them in an older format.

    ``code`` is stable and meant for programs, ``detail`` is a sentence for people, ``accepted``
    says what is accepted instead, and ``field`` is the invalid field, if there is one. ``type`` is
    the path of the page about the error in the documentation of the site, if there is one.
    """

    type: str = NO_TYPE
    title: str = ""
    status: int = 0
    detail: str = ""
    code: str = ""
    accepted: str = ""
    field: str = ""
    request_id: str = ""
    """The id of this HTTP call, as in the header X-Request-ID and in the log of the service."""
    error: ErrorBody


PROBLEM_TYPE = "application/problem+json"
