"""Reach what ``carrel serve`` serves in this session, behind its sign-in.

carrel/served/NAME/…    is passed on to the Unix socket that the user's home names
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado.httpclient import HTTPClientError
from tornado.web import authenticated

from ..environment import SERVED_PATH
from ..model_server import served_sockets
from .socket_proxy import pass_on


class ServedHandler(JupyterHandler):
    """Passes calls on to a served model.

    Calls with a cookie need the token against forged calls, which the page sends: on a site with
    one host name, pages of other users' servers may send JSON too.
    """

    @authenticated
    async def get(self, name: str, part: str) -> None:
        _ = self.xsrf_token  # sets the cookie that the page reads
        await self._forward(name, part)

    @authenticated
    async def post(self, name: str, part: str) -> None:
        await self._forward(name, part)

    async def _forward(self, name: str, part: str) -> None:
        if not part:
            self.redirect(f"{self.request.path}/")
            return
        path = await asyncio.to_thread(served_sockets.find, name)
        if path is None:
            await self._refuse(
                HTTPStatus.NOT_FOUND,
                "not_found",
                f"Nothing is served as {name} now.",
                "Start it in a terminal of the session: carrel serve.",
            )
            return
        prefix = url_path_join(self.base_url, SERVED_PATH, name)
        uri = self.request.uri or ""
        try:
            await pass_on(self, path, uri.removeprefix(prefix))
        except (HTTPClientError, OSError):  # too late, or the connection was closed
            await self._refuse(
                HTTPStatus.BAD_GATEWAY,
                "unavailable",
                f"{name} gave no answer.",
                "Look at the terminal in which carrel serve runs.",
            )

    async def _refuse(self, status: int, code: str, message: str, accepted: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        error = {"code": code, "message": message, "accepted": accepted}
        await self.finish(json.dumps({"error": error}))


def install_served(server_app: ServerApp) -> None:
    """Add the route."""
    base = server_app.web_app.settings["base_url"]
    pattern = url_path_join(base, SERVED_PATH, f"({served_sockets.NAME.pattern})(/.*)?")
    server_app.web_app.add_handlers(".*$", [(pattern, ServedHandler)])  # type: ignore[no-untyped-call]  # tornado
