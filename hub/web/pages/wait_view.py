"""Content of the waiting page of a session."""

from __future__ import annotations

from dataclasses import dataclass

from ...records.identity import Identity
from ...requests.queries import RequestQueries
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import LIVE, TERMINAL, State
from ...schemas import RequestOut

_LISTED = 200
_RECENT_SECONDS = 3600.0
_ORDERLY = frozenset({"succeeded", "stopped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitView:
    """The request of a session, for its owner."""

    request: RequestOut

    @property
    def held(self) -> bool:
        """Whether its device is held for the owner."""
        return self.request.claim_by is not None

    @property
    def may_open_on_cpu(self) -> bool:
        """Whether the owner can work on CPU meanwhile."""
        return self.request.state == "queued" and self.request.devices > 0

    @property
    def signature(self) -> str:
        """A value that changes with everything that the page shows."""
        return self.request.model_dump_json(exclude={"device_seconds"})


def session_of(
    requests: RequestQueries, who: Identity, server_name: str, *, now: float
) -> RequestOut | None:
    """Return the request to show for a server: the live one, else one that has just failed."""

    def newest_of(states: frozenset[State]) -> RequestOut | None:
        found = requests.requests(who, kind=Kind.SESSION, states=states, mine=True, limit=_LISTED)
        return next((request for request in found if request.server_name == server_name), None)

    live = newest_of(LIVE)
    newest = newest_of(TERMINAL) if live is None else None
    if newest is None:
        return live
    badly = newest.cause is not None and newest.cause.code not in _ORDERLY
    recent = newest.ended_at is not None and now - newest.ended_at < _RECENT_SECONDS
    return newest if badly and recent else None
