"""Verify that a change with a cookie comes from a page of Carrel itself.

Two independent proofs: a token signed for this sign-in (hidden form field, or the header
``X-Carrel-CSRF``), which another site cannot read; and the origin that the browser reports
(``Sec-Fetch-Site``, else ``Origin``).
"""

from __future__ import annotations

import hashlib
import secrets
from urllib.parse import urlsplit

from starlette.requests import Request

from ...errors import Forbidden
from .signer import Signer, same

HEADER = "X-Carrel-CSRF"
FIELD = "csrf"
_PURPOSE = "csrf"
_FOREIGN = "This request came from a page of another site."
_ADVICE = "Reload the page and repeat the action; programs send an API token instead."


class Csrf:
    """Issues and checks form tokens."""

    def __init__(self, signer: Signer, public_url: str) -> None:
        self._signer = signer
        self._public_host = urlsplit(public_url).netloc

    def issue(self, session: str) -> str:
        """Return a form token for this sign-in (the value of its cookie)."""
        nonce = secrets.token_urlsafe(12)
        return f"{nonce}.{self._signer.mac(_PURPOSE, nonce + _hash(session))}"

    def check(self, request: Request, session: str, token: str | None) -> None:
        """Check the origin and the form token of a request; raises Forbidden with the reason."""
        self.check_origin(request)
        if not token:
            raise Forbidden("The form token is missing.", accepted=_ADVICE)
        nonce, _, mac = token.partition(".")
        if not same(mac, self._signer.mac(_PURPOSE, nonce + _hash(session))):
            raise Forbidden("The form token belongs to another sign-in.", accepted=_ADVICE)

    def check_origin(self, request: Request) -> None:
        """Check the origin alone, for a form without a sign-in; raises Forbidden."""
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        if site is not None and site != "same-origin":
            raise Forbidden(_FOREIGN, accepted=_ADVICE)
        if origin is not None:
            host, theirs = request.headers.get("host", ""), urlsplit(origin)
            # A proxy in front may pass the host on without its port.
            ours = {host, self._public_host, *([theirs.netloc] if theirs.hostname == host else ())}
            if theirs.netloc not in ours - {""}:
                raise Forbidden(_FOREIGN, accepted=_ADVICE)
        elif site is None:
            raise Forbidden(
                "The browser does not send the origin of this request.", accepted=_ADVICE
            )


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
