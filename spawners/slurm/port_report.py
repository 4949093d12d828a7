"""The call by which a session on a node tells its port to JupyterHub.

``batchspawner-singleuser`` makes it. Batchspawner's own handler sets whatever attributes of the
spawner the body names, with the token of the user's server: also the commands that the hub runs
(batchspawner 1.3, ``api.py``). This one takes a port, and nothing else.
"""

from __future__ import annotations

import json

import batchspawner  # noqa: F401  # adds its handler, which is replaced
from jupyterhub.apihandlers import APIHandler, default_handlers
from tornado import web

PATH = r"/api/batchspawner"
_PORTS = range(1024, 65536)


class PortHandler(APIHandler):  # type: ignore[misc]  # untyped base
    """``POST /hub/api/batchspawner`` with ``{"port": 40123}`` and the token of the server."""

    @web.authenticated
    def post(self) -> None:
        body = self.get_json_body()
        port = body.get("port") if isinstance(body, dict) else None
        if type(port) is not int or port not in _PORTS:
            raise web.HTTPError(400, f"A port is a whole number from 1024 to 65535, not {port!r}.")
        token = self.get_auth_token()
        for spawner in self.current_user.spawners.values():
            if token and spawner.api_token == token:
                spawner.port = port
                self.set_status(201)
                self.finish(json.dumps({"message": "The port is known."}))
                return
        raise web.HTTPError(403, "This is not the token of a server that starts.")


def install() -> None:
    """Replace batchspawner's handler."""
    others = [each for each in default_handlers if each[0] != PATH]
    default_handlers[:] = [*others, (PATH, PortHandler)]
