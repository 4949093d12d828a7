"""Record the server starts that were requested from JupyterHub, with their session requests.

A start that JupyterHub performs shortly afterwards belongs to that request. A later start was made
by the owner, and opens a new session.
"""

from __future__ import annotations

PENDING_SECONDS = 30.0
"""How long a start by JupyterHub is attributed to the service."""


class PendingServerStarts:
    """The session request of the newest start of each server, with its time."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str], tuple[str, float]] = {}

    def note(self, owner: str, server_name: str, request_id: str, *, now: float) -> None:
        """Record that the service is about to request this server from JupyterHub."""
        self._starts[owner, server_name] = request_id, now

    def request_of(self, owner: str, server_name: str, *, now: float) -> str | None:
        """Return the session request of a pending start; None after ``PENDING_SECONDS``."""
        request_id, at = self._starts.get((owner, server_name), (None, 0.0))
        return request_id if now - at < PENDING_SECONDS else None

    def clear(self, owner: str, server_name: str) -> None:
        """Drop the start, because it was performed."""
        self._starts.pop((owner, server_name), None)
