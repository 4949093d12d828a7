"""The dashboard of pool, queue and own jobs, served by the user's own Jupyter server with Voila.

A session finds it through its environment (``jupyter_environment``): the folder ``etc`` switches
the server extension on, makes Voila use the template in ``share``, which asks no other host for
anything, and keeps JupyterLab from asking everybody whether it may fetch news from elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .place import HERE

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def jupyter_environment(present: Mapping[str, str]) -> dict[str, str]:
    """What a session's environment needs; what is in it already stays in front."""
    return {
        "JUPYTER_CONFIG_PATH": _joined(present.get("JUPYTER_CONFIG_PATH"), HERE / "etc"),
        "JUPYTER_PATH": _joined(present.get("JUPYTER_PATH"), HERE / "share"),
    }


def _joined(present: str | None, folder: Path) -> str:
    return os.pathsep.join([*filter(None, [present]), str(folder)])


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "carrel.extensions.dashboards"}]


def _load_jupyter_server_extension(server_app: ServerApp) -> None:
    """A server without Voila serves no dashboard, and everything else as before."""
    try:
        from .serving import install  # noqa: PLC0415  # Voila is not part of the plain install
    except ModuleNotFoundError as error:
        server_app.log.warning("Carrel's dashboard is not served: %s", error)
        return
    install(server_app)
