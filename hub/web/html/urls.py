"""URLs of course pages, pages of users, waiting pages and sessions."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ...config.base_url import BASE_URL, SERVICE_PREFIX

DEFAULT_SERVER = "-"
"""The name of the default server in URLs."""
MOST_NEXT = 2000
_HUB = f"{BASE_URL}hub/"
_USERS = f"{BASE_URL}user/"
_PATH = re.compile(r"(?:/[A-Za-z0-9!$&'()*+,;=:@._~%-]*)*")
_NEVER = frozenset({"token", "next"})


def server_of(segment: str) -> str:
    """Return the server name of a URL segment."""
    return "" if segment == DEFAULT_SERVER else segment


def segment_of(server_name: str) -> str:
    return quote(server_name, safe="") or DEFAULT_SERVER


def course_url(course: str, *steps: str) -> str:
    """Return the URL of a page of a course."""
    return f"{SERVICE_PREFIX}course/{'/'.join(quote(step, safe='') for step in (course, *steps))}"


def person_url(name: str) -> str:
    """Return the URL of a user's page for administrators."""
    return f"{SERVICE_PREFIX}admin/person/{quote(name, safe='')}"


def password_link(site: str, code: str) -> str:
    """Return the one-time link of a code, on the site with this address.

    The code is behind ``#``: browsers do not send it, so that no log of a server contains it.
    """
    return f"{site}{SERVICE_PREFIX}password#{code}"


def wait_url(server_name: str, wanted: str = "") -> str:
    """Return the URL of the waiting page, which then opens ``wanted`` inside the session."""
    page = f"{SERVICE_PREFIX}wait/{segment_of(server_name)}"
    return f"{page}?{urlencode({'next': wanted})}" if wanted else page


def server_url(owner: str, server_name: str) -> str:
    """Return the URL of the session, behind the same proxy."""
    base = f"{_USERS}{quote(owner, safe='@~')}/"
    return f"{base}{quote(server_name, safe='@~')}/" if server_name else base


def page_in_session(owner: str, server_name: str, wanted: str) -> str:
    """Return the URL of the requested page inside a session, else of its start page.

    JupyterHub passes the requested link on: ``/hub/user/ada/lab/tree/x.ipynb``.
    """
    start = server_url(owner, server_name)
    if len(wanted) > MOST_NEXT or not wanted.isascii() or not wanted.isprintable():
        return start
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return start
    path = parts.path
    if path.startswith(f"{_HUB}user/"):
        path = BASE_URL + path.removeprefix(_HUB)
    steps = path.casefold().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").split("/")
    plain = _PATH.fullmatch(path) and "//" not in path and not {".", ".."} & set(steps)
    if parts.scheme or parts.netloc or not plain or not path.startswith(start):
        return start
    # A link may name what to open (as nbgitpuller does), but must not contain a token.
    query = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k not in _NEVER]
    return f"{path}?{urlencode(query)}" if query else path


def page_in_other_session(owner: str, server_name: str, other: str, wanted: str) -> str:
    """Return the URL of a session's requested page in another session of its owner.

    Empty for the start page, or if the page is not inside the session.
    """
    page = page_in_session(owner, server_name, wanted)
    inside = page.removeprefix(server_url(owner, server_name))
    return server_url(owner, other) + inside if inside else ""
