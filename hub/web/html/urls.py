"""Addresses of pages: of a course, of the wait for a session, and of where one ends inside it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ...config.settings import SERVICE_PREFIX

DEFAULT_SERVER = "-"
"""How the default server, whose name is empty, is called in addresses."""
MOST_NEXT = 2000
_HUB = "/hub"
_PATH = re.compile(r"(?:/[A-Za-z0-9!$&'()*+,;=:@._~%-]*)*")
_NEVER = frozenset({"token", "next"})


def server_of(segment: str) -> str:
    """The server's name from its place in an address."""
    return "" if segment == DEFAULT_SERVER else segment


def segment_of(server_name: str) -> str:
    return quote(server_name, safe="") or DEFAULT_SERVER


def course_url(course: str, *steps: str) -> str:
    """A page of a course, by the names on the way to it."""
    return f"{SERVICE_PREFIX}course/{'/'.join(quote(step, safe='') for step in (course, *steps))}"


def wait_url(server_name: str, wanted: str = "") -> str:
    """The page that waits for a session, and then goes on to ``wanted`` inside it."""
    page = f"{SERVICE_PREFIX}wait/{segment_of(server_name)}"
    return f"{page}?{urlencode({'next': wanted})}" if wanted else page


def server_url(owner: str, server_name: str) -> str:
    """Where the session itself is, behind the same proxy."""
    base = f"/user/{quote(owner, safe='@~')}/"
    return f"{base}{quote(server_name, safe='@~')}/" if server_name else base


def door(owner: str, server_name: str, wanted: str) -> str:
    """The session, at the place that a link wanted, if that lies inside it; else its start.

    JupyterHub hands the link on as it was asked for: ``/hub/user/ada/lab/tree/x.ipynb``.
    """
    start = server_url(owner, server_name)
    if len(wanted) > MOST_NEXT or not wanted.isascii() or not wanted.isprintable():
        return start
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return start
    path = parts.path.removeprefix(_HUB) if parts.path.startswith(f"{_HUB}/user/") else parts.path
    steps = path.casefold().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").split("/")
    plain = _PATH.fullmatch(path) and "//" not in path and not {".", ".."} & set(steps)
    if parts.scheme or parts.netloc or not plain or not path.startswith(start):
        return start
    # A link may say what to open (nbgitpuller does), and never who is signed in.
    query = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k not in _NEVER]
    return f"{path}?{urlencode(query)}" if query else path
