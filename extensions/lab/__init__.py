"""What a session tells Carrel about its kernels, and what JupyterLab shows of the answer.

* ``kernels`` listens to the kernels of this server: only their own messages tell whether a cell
  runs. Open tabs, and widgets that are pushed, are no cells.
* ``standing`` sends that to the service with the session's own token, and hears whether the
  session is about to be stopped; the service never needs a token for a server that its user
  controls.
* ``serving`` hands it on to the front end in ``share``, which needs no token at all.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "carrel.extensions.lab"}]


def _load_jupyter_server_extension(server_app: ServerApp) -> None:
    """Outside of a session on a lease there is nothing to tell."""
    request_id = os.environ.get("CARREL_REQUEST", "")
    if not request_id or not os.environ.get("CARREL_LEASE"):
        return
    from .handlers import install  # noqa: PLC0415  # not needed elsewhere

    install(server_app, request_id)
