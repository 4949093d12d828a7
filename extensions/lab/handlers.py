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
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from jupyter_core.paths import jupyter_data_dir
from jupyter_server.base.handlers import APIHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.iostream import StreamClosedError

from ...hub.client import AsyncClient
from ...hub.errors import CarrelError
from ...hub.interfaces.session_meter import GROUP, VARIABLE, SessionMeter
from ...hub.schemas import WatchOut
from ..environment import (
    CLAIM_PATH,
    GIVE_UP_PATH,
    JOURNAL_PATH,
    KEEP_SESSION_PATH,
    SESSION_STATUS_PATH,
)
from .journal_handlers import JournalHandler, SavedHandler
from .kernel_activity import KernelWatch, ServerKernelManager
from .kernel_connection import listening
from .kernel_journals import KernelJournals
from .panel_handlers import panel_routes
from .service_handler import ServiceHandler
from .session_status import SessionStatus, last_call
from .teacher_parts import hide_from_students

JOURNAL_FOLDER = Path("carrel", "outputs")
"""Below the user's folder of Jupyter data."""
_CONNECTIONS = "kernel_websocket_connection_class"
_KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"

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


class _ActionHandler(ServiceHandler):
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
            self.refuse(error)
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


def _meter(server_app: ServerApp) -> SessionMeter | None:
    """Return the meter that the engine of this session names; None without one."""
    name = os.environ.get(VARIABLE, "")
    for entry in entry_points(group=GROUP, name=name) if name else ():
        try:
            return cast("SessionMeter", entry.load()())
        except Exception as error:  # the session is worth more than its measurement
            server_app.log.warning("This session does not measure itself: %s", error)
    return None


def install(server_app: ServerApp, request_id: str) -> None:
    manager = cast("ServerKernelManager", server_app.kernel_manager)
    journals = KernelJournals(root=Path(jupyter_data_dir()) / JOURNAL_FOLDER, log=server_app.log)
    kernels = KernelWatch(manager=manager, clock=time.monotonic, journals=journals)
    session_status = SessionStatus(
        service=AsyncClient.from_environment(),
        request_id=request_id,
        kernels=kernels,
        log=server_app.log,
        meter=_meter(server_app),
    )
    _add_routes(server_app, session_status, {"journals": journals, "kernels": manager})
    _listen_to_kernels(server_app, kernels)

    def ended(task: asyncio.Task[None]) -> None:
        _running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            server_app.log.error("reporting to Carrel has stopped", exc_info=error)

    async def start() -> None:
        task = asyncio.create_task(session_status.run())
        _running.add(task)  # the loop itself keeps only weak references
        task.add_done_callback(ended)
        hide_from_students(server_app.web_app.settings)

    server_app.io_loop.add_callback(start)


def _add_routes(
    server_app: ServerApp, session_status: SessionStatus, journal: dict[str, Any]
) -> None:
    status = {"session_status": session_status}
    base = server_app.web_app.settings["base_url"]
    kernel = url_path_join(JOURNAL_PATH, "([^/]+)")
    root = Path(server_app.web_app.settings["server_root_dir"]).expanduser().resolve()
    routes = [
        (url_path_join(base, path), handler, arguments)
        for path, handler, arguments in (
            (SESSION_STATUS_PATH, SessionStatusHandler, status),
            (KEEP_SESSION_PATH, KeepSessionHandler, status),
            (CLAIM_PATH, ClaimHandler, status),
            (GIVE_UP_PATH, GiveUpHandler, status),
            (kernel, JournalHandler, journal),
            (url_path_join(kernel, "saved"), SavedHandler, journal),
            *panel_routes(root, session_status.request_id),
        )
    ]
    server_app.web_app.add_handlers(".*$", routes)  # type: ignore[no-untyped-call]  # tornado


def _listen_to_kernels(server_app: ServerApp, kernels: KernelWatch) -> None:
    """Listen to requests of pages and to restarts."""
    settings = server_app.web_app.settings
    settings[_CONNECTIONS] = listening(settings[_CONNECTIONS], kernels)
    try:
        kernels.journals.prune()
    except OSError as error:
        server_app.log.warning("old outputs of kernels cannot be removed: %s", error)

    async def act(logger: object, schema_id: str, data: dict[str, Any]) -> None:  # by name
        if data.get("action") == "restart" and data.get("status") == "success":
            kernels.restarted(str(data.get("kernel_id")))

    if server_app.event_logger is not None:
        server_app.event_logger.add_listener(schema_id=_KERNEL_ACTIONS, listener=act)
