"""Report a session's kernels to Carrel, keep their outputs, and show both in JupyterLab.

* ``kernel_activity`` listens to the kernels of this server: only their own messages show whether a
cell runs. Open tabs and widget updates are not cells. * ``session_status`` reports that to the
service with the session's token, and learns whether the session is about to be stopped and whether
a device is held for its user; the service never needs a token for a server that its user controls.
* ``handlers`` passes it on to the front end in ``share``, which needs no token.
* ``output_journal`` keeps the outputs of cells until a saved notebook has them; the front end
replays them into the open document.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "carrel.extensions.lab"}]


def _load_jupyter_server_extension(server_app: ServerApp) -> None:
    """Install the extension in a session on a lease; do nothing elsewhere."""
    request_id = os.environ.get("CARREL_REQUEST", "")
    if not request_id or not os.environ.get("CARREL_LEASE"):
        return
    from .. import session_secrets  # noqa: PLC0415  # not needed elsewhere
    from .handlers import install  # noqa: PLC0415  # not needed elsewhere

    session_secrets.fetch()

    install(server_app, request_id)
