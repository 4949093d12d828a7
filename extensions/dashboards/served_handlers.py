"""Reach what ``carrel serve`` serves in this session, behind its sign-in.

carrel/served/          links to what is served now
carrel/served/NAME/…    is passed on to the Unix socket that the user's home names
"""

from __future__ import annotations

import asyncio
import json
from html import escape
from http import HTTPStatus
from typing import Final

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado.httpclient import HTTPClientError
from tornado.web import authenticated

from ..environment import SERVED_PATH
from ..model_server import served_sockets
from ..model_server.application import MOST_BYTES
from .socket_proxy import pass_on

PAGE: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Served models</title><link rel="icon" href="data:;base64,=">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 0 auto; padding: 1rem; }}
</style></head>
<body><main><h1>Served models</h1>{found}
<p>Start another one in a terminal of the session: <code>carrel serve SOURCE</code></p>
</main></body>
</html>
"""
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


class ServedListHandler(JupyterHandler):
    """Links what this session serves, for a user who has no longer the printed address."""

    @authenticated
    async def get(self) -> None:
        names = await asyncio.to_thread(served_sockets.served_names)
        links = "".join(f'<li><a href="{escape(name)}/">{escape(name)}</a></li>' for name in names)
        found = f"<ul>{links}</ul>" if names else "<p>This session serves nothing now.</p>"
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("Cache-Control", "no-store")
        await self.finish(PAGE.format(found=found))


class ServedHandler(JupyterHandler):
    """Passes calls on to a served model.

    Calls with a cookie need the token against forged calls, which the page sends: on a site with
    one host name, pages of other users' servers may send JSON too.
    """

    passed: asyncio.Task[None] | None = None

    def on_connection_close(self) -> None:
        """Take the call out of the queue: its caller has gone."""
        super().on_connection_close()
        if self.passed is not None:
            self.passed.cancel()

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
        if len(self.request.body) > MOST_BYTES:
            await self._refuse(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too_large",
                f"The call has {len(self.request.body)} bytes.",
                f"At most {MOST_BYTES} bytes; send the rows in several calls.",
            )
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
            self.passed = asyncio.create_task(pass_on(self, path, uri.removeprefix(prefix)))
            await self.passed
        except asyncio.CancelledError:  # the caller has gone
            return
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
    """Add the routes."""
    base = server_app.web_app.settings["base_url"]
    pattern = url_path_join(base, SERVED_PATH, f"({served_sockets.NAME.pattern})(/.*)?")
    listed = url_path_join(base, SERVED_PATH, "/")
    routes = [(listed, ServedListHandler), (pattern, ServedHandler)]
    server_app.web_app.add_handlers(".*$", routes)  # type: ignore[no-untyped-call]  # tornado
