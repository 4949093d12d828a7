"""The exception for a start that is refused or fails, in the form that JupyterHub shows."""

from __future__ import annotations

import html

from jupyterhub.spawner import SpawnException

from ...hub.errors import CarrelError


class StartRefused(SpawnException):  # type: ignore[misc]  # jupyterhub has no types
    """A start that was refused or failed; JupyterHub does not count it as its own error.

    JupyterHub's pages and API read these attributes; without them they show the exception's
    representation.

    Args:
        reason: a label for the hub's metrics.
        details: the end of a log.
    """

    def __init__(self, message: str, *, reason: str, status_code: int, details: str = "") -> None:
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
    """Return a refusal with the service's message and its accepted values."""
    return StartRefused(str(error), reason=error.code, status_code=error.http_status)
