"""The exception for a start that is refused or fails, in the form that JupyterHub shows."""

from __future__ import annotations

import html

from jupyterhub.spawner import SpawnException

from ...hub.errors import CarrelError


class StartRefused(SpawnException):  # type: ignore[misc]  # jupyterhub has no types
    """Counts as a failure, not as an error of the hub, however often it happens.

    JupyterHub's pages and API read these attributes; without them they show the exception's
    representation.
    """

    def __init__(self, message: str, *, reason: str, status_code: int, details: str = "") -> None:
        """``reason``: a label for the hub's metrics. ``details``: the tail of a log."""
        pre = f"<pre>{html.escape(details)}</pre>" if details else ""
        self.jupyterhub_html_message = f"<span>{html.escape(message)}</span>{pre}"
        self.jupyterhub_message = message
        super().__init__(
            message,
            reason=reason,
            message_html=self.jupyterhub_html_message,
            status_code=status_code,
        )


def refused(error: CarrelError) -> StartRefused:
    """Return a refusal with the service's message and what it would accept."""
    return StartRefused(str(error), reason=error.code, status_code=error.http_status)
