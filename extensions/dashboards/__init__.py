"""The dashboard of pool, queue and own jobs, served by the user's own Jupyter server with Voila.

A session finds it through its environment (``extensions.environment``): the folder ``etc`` switches
the server extension on, makes Voila use the template in ``share``, which asks no other host for
anything, and keeps JupyterLab from asking everybody whether it may fetch news from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "carrel.extensions.dashboards"}]


def _load_jupyter_server_extension(server_app: ServerApp) -> None:
    """A server without Voila serves no dashboard, and everything else as before."""
    try:
        from .handlers import install  # noqa: PLC0415  # Voila is not part of the plain install
    except ModuleNotFoundError as error:
        server_app.log.warning("Carrel's dashboard is not served: %s", error)
        return
    install(server_app)
