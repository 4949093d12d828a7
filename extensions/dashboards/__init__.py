"""Serve a dashboard, viewers of logs and served models by the user's server.

A session finds it through its environment (``extensions.environment``). The folder ``etc`` enables
the server extension, makes Voila use the template in ``share``, which asks no external host for
anything, and keeps JupyterLab from asking each user whether it may fetch news.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "carrel.extensions.dashboards"}]


def _load_jupyter_server_extension(server_app: ServerApp) -> None:
    """Install them; a server without Voila lacks only the dashboard."""
    from .log_viewer_handlers import install_log_viewers  # noqa: PLC0415  # needs a server
    from .served_handlers import install_served  # noqa: PLC0415  # the same

    install_log_viewers(server_app)
    install_served(server_app)
    try:
        from .handlers import install  # noqa: PLC0415  # Voila is not part of the basic install
    except ModuleNotFoundError as error:
        server_app.log.warning("Carrel's dashboard is not available: %s", error)
        return
    install(server_app)
