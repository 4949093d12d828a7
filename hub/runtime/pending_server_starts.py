"""Remember for which requests JupyterHub was asked to start a server.

A start that JupyterHub performs shortly after belongs to that request; a later one is the
owner's own and opens a new session.
"""

from __future__ import annotations

PENDING_SECONDS = 30.0
"""How long a start by JupyterHub counts as the answer to the service."""


class PendingServerStarts:
    """The request of the newest start of each server, with its time."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str], tuple[str, float]] = {}

    def note(self, owner: str, server_name: str, request_id: str, *, now: float) -> None:
        """JupyterHub is about to be asked for this server, for this request."""
        self._starts[owner, server_name] = request_id, now

    def request_of(self, owner: str, server_name: str, *, now: float) -> str | None:
        """Return the request for which JupyterHub was just asked; None after a while."""
        request_id, at = self._starts.get((owner, server_name), (None, 0.0))
        return request_id if now - at < PENDING_SECONDS else None

    def clear(self, owner: str, server_name: str) -> None:
        """Forget the start: it was performed."""
        self._starts.pop((owner, server_name), None)
