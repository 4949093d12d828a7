"""What the waiting page shows of a session's request."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from ..commands import Commands
from ..config import SERVICE_PREFIX
from ..ports.world import Identity
from ..scheduling.lifecycle import LIVE, TERMINAL, State
from ..scheduling.model import Kind
from ..wire import RequestOut

DEFAULT_SERVER = "-"
"""How the default server, whose name is empty, is called in addresses."""
_LISTED = 200
_RECENT_SECONDS = 3600.0
_ORDERLY = frozenset({"succeeded", "stopped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitView:
    """A session's request in the eyes of whoever waits for it."""

    request: RequestOut
    expected_at: float | None
    latest_at: float | None

    @property
    def why(self) -> str:
        """The reason without the place, which the page shows in large figures."""
        wait = self.request.wait
        return wait.sentence.removeprefix(f"Place {wait.place}.").strip() if wait else ""

    @property
    def signature(self) -> str:
        """Changes with everything that the page shows."""
        return self.request.model_dump_json(exclude={"device_seconds"})


def wait_view(request: RequestOut, now: float) -> WaitView:
    """An estimate that has passed is shown as now, not as a time that lies behind."""
    wait = request.wait
    expected = max(wait.expected_at, now) if wait and wait.expected_at is not None else None
    latest = max(wait.latest_at, now) if wait and wait.latest_at is not None else None
    return WaitView(request=request, expected_at=expected, latest_at=latest)


def session_of(
    commands: Commands, who: Identity, server_name: str, *, now: float
) -> RequestOut | None:
    """The request to show for a server: the live one, else one that just ended badly."""

    def newest_of(states: frozenset[State]) -> RequestOut | None:
        found = commands.requests(who, kind=Kind.SESSION, states=states, mine=True, limit=_LISTED)
        return next((request for request in found if request.server_name == server_name), None)

    live = newest_of(LIVE)
    newest = newest_of(TERMINAL) if live is None else None
    if newest is None:
        return live
    badly = newest.cause is not None and newest.cause.code not in _ORDERLY
    recent = newest.ended_at is not None and now - newest.ended_at < _RECENT_SECONDS
    return newest if badly and recent else None


def server_of(segment: str) -> str:
    """The server's name from its place in an address."""
    return "" if segment == DEFAULT_SERVER else segment


def segment_of(server_name: str) -> str:
    return quote(server_name, safe="") or DEFAULT_SERVER


def wait_url(server_name: str) -> str:
    return f"{SERVICE_PREFIX}wait/{segment_of(server_name)}"


def server_url(owner: str, server_name: str) -> str:
    """Where the session itself is, behind the same proxy."""
    base = f"/user/{quote(owner, safe='@~')}/"
    return f"{base}{quote(server_name, safe='@~')}/" if server_name else base
