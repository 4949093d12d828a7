"""Redirects to pages of this site only, and to the sign-in page."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from ...config.base_url import SERVICE_PREFIX

SEE_OTHER = 303


_SEGMENT = r"[A-Za-z0-9~_%-][A-Za-z0-9.~_%-]{0,99}"
_QUERY = r"\?[A-Za-z0-9.~_%+&=:/@-]{0,1000}"
"""Of a link that opens material. It is stored in cookies, several of which may be open."""


_OWN_PAGE = re.compile(
    rf"{re.escape(SERVICE_PREFIX)}"
    rf"(?:|usage|course/{_SEGMENT}|wait/{_SEGMENT}|requests/{_SEGMENT}|open(?:/link)?(?:{_QUERY})?)"
)


def own_page(wanted: str) -> str:
    """Return the page to open after sign-in: one of our own pages, by default the desk."""
    return wanted if _OWN_PAGE.fullmatch(wanted) else SERVICE_PREFIX


def to_sign_in(wanted: str) -> RedirectResponse:
    """Redirect to the sign-in, and from there back to the requested page."""
    query = urlencode({"next": own_page(wanted)})
    return RedirectResponse(f"{SERVICE_PREFIX}login?{query}", SEE_OTHER)
