"""The paths of a user's server that the front end uses: a status stream and its buttons."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable
from contextlib import aclosing
from http import HTTPStatus
from typing import cast

from jupyter_server.base.handlers import APIHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.iostream import StreamClosedError

from ...hub.client import AsyncClient
from ...hub.errors import CarrelError
from ...hub.schemas import WatchOut
from ..environment import CLAIM_PATH, GIVE_UP_PATH, KEEP_SESSION_PATH, SESSION_STATUS_PATH
from .kernel_activity import KernelWatch, ServerKernelManager
from .session_status import SessionStatus, last_call

_running: set[asyncio.Task[None]] = set()


class SessionStatusHandler(APIHandler):
    """Streams one JSON object per line: notices, whether to save now, recovery message."""

    def initialize(self, session_status: SessionStatus) -> None:
        self.session_status = session_status

    @web.authenticated
    async def get(self) -> None:
        self.set_header("Content-Type", "application/x-ndjson")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")
        with contextlib.suppress(StreamClosedError):  # the tab is gone
            async with aclosing(self.session_status.changes()) as changes:
                async for now in changes:
                    await self._write_status(now)

    async def _write_status(self, now: WatchOut | None) -> None:
        status = {
            **(now.model_dump(include={"warning", "held", "shown"}) if now else {}),
            "save": last_call(now, time.time()),
            "recovery": os.environ.get("CARREL_RECOVERY", ""),
        }
        self.write(json.dumps(status) + "\n")
        await self.flush()


class _ActionHandler(APIHandler):
    """A button of a notice; answers with the error of the service, if any."""

    def initialize(self, session_status: SessionStatus) -> None:
        self.session_status = session_status

    def action(self) -> Awaitable[None]:
        raise NotImplementedError

    @web.authenticated
    async def post(self) -> None:
        try:
            await self.action()
        except CarrelError as error:
            self.set_status(error.http_status)
            self.finish(json.dumps({"message": str(error)}))
            return
        self.set_status(HTTPStatus.NO_CONTENT)
        self.finish()


class KeepSessionHandler(_ActionHandler):
    def action(self) -> Awaitable[None]:
        return self.session_status.keep()


class ClaimHandler(_ActionHandler):
    def action(self) -> Awaitable[None]:
        return self.session_status.claim(self.get_query_argument("request"))


class GiveUpHandler(_ActionHandler):
    def action(self) -> Awaitable[None]:
        return self.session_status.give_up(self.get_query_argument("request"))


def install(server_app: ServerApp, request_id: str) -> None:
    session_status = SessionStatus(
        service=AsyncClient.from_environment(),
        request_id=request_id,
        kernels=KernelWatch(
            manager=cast("ServerKernelManager", server_app.kernel_manager), clock=time.monotonic
        ),
        log=server_app.log,
    )
    arguments = {"session_status": session_status}
    base = server_app.web_app.settings["base_url"]
    routes = [
        (url_path_join(base, SESSION_STATUS_PATH), SessionStatusHandler, arguments),
        (url_path_join(base, KEEP_SESSION_PATH), KeepSessionHandler, arguments),
        (url_path_join(base, CLAIM_PATH), ClaimHandler, arguments),
        (url_path_join(base, GIVE_UP_PATH), GiveUpHandler, arguments),
    ]
    server_app.web_app.add_handlers(".*$", routes)  # type: ignore[no-untyped-call]  # tornado

    def ended(task: asyncio.Task[None]) -> None:
        _running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            server_app.log.error("reporting to Carrel has stopped", exc_info=error)

    async def start() -> None:
        task = asyncio.create_task(session_status.run())
        _running.add(task)  # the loop itself keeps only weak references
        task.add_done_callback(ended)

    server_app.io_loop.add_callback(start)
