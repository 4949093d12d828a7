"""What is answered where something is wrong."""

from __future__ import annotations

from .base import Out


class ErrorBody(Out):
    code: str
    message: str
    accepted: str = ""


class ErrorOut(Out):
    """A problem after RFC 9457; ``error`` says the same once more, in the older form.

    ``code`` is stable and made for programs, ``detail`` is the sentence for people, and
    ``accepted`` says what would have been accepted, where that helps; ``field`` is the part of
    what was sent that was wrong, where it was one part.
    """

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""
    code: str = ""
    accepted: str = ""
    field: str = ""
    request_id: str = ""
    """Of this call, as in the header X-Request-ID; the service's log names it too."""
    error: ErrorBody


PROBLEM_TYPE = "application/problem+json"
