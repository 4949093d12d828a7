"""Puts the web layer together: one FastAPI application under the service's prefix."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import RedirectResponse

from ...courses.files.blobs import MemoryBlobs
from ...courses.services import CourseDesk
from ...courses.store import MemoryCourseStore
from ..accounts.store import Accounts
from ..administration.service import Administration
from ..admission.quotes import Quotes
from ..config.settings import LOCALHOST, SERVICE_PREFIX, Settings
from ..controller.idle_culling import Idling
from ..interfaces.clock import Clock
from ..messages import requests as wording
from ..messages import usage as usage_words
from ..requests.amendments import Changing, Extending
from ..runtime.context import Commands
from ..runtime.loop_metrics import Vitals
from ..runtime.notifier import Pulse
from ..sessions.held import Claims
from ..usage.reports import Figures
from .api import admin as admin_routes
from .api import calendar as calendar_routes
from .api import courses as course_routes
from .api import coursework as student_routes
from .api import images as image_routes
from .api import internal as reports
from .api import monitoring, requests
from .api import ngshare as exchange_routes
from .api import pool as changes
from .api import sessions as session_routes
from .api import sessions as sessions_module
from .api import usage as history_routes
from .dependencies import errors
from .dependencies import visitors as guests
from .dependencies.bodies import BodyLimit
from .dependencies.context import Web
from .dependencies.group_choices import GroupBook
from .html import static_files as assets
from .html.filters import drawn_once, filters
from .html.urls import server_url, wait_url
from .live.change_feed import Looks
from .live.sse import Streams
from .monitoring.metrics import Metrics
from .monitoring.readiness import Check, Readiness, going_round
from .monitoring.request_log import Tracing
from .openapi import description as schema
from .pages import desk as pages
from .pages import login as signing_in
from .pages import sessions
from .pages import sessions as session_pages
from .pages import usage as history_pages
from .pages.admin import admin as admin_pages
from .pages.admin import calendar as calendar_pages
from .pages.admin import images as image_pages
from .pages.courses import assignment as assignment_pages
from .pages.courses import courses as course_pages
from .pages.courses import grading as grading_pages
from .pages.courses import release as release_pages
from .pages.courses import student_work as graded_pages
from .pages.courses import teacher as teaching_pages
from .pages.jobs import detail as job_pages
from .pages.jobs import list as list_pages
from .pages.jobs import submit as submit_pages
from .security.access import Gate
from .security.csrf import Csrf
from .security.headers import SafeHeaders
from .security.hub_oauth import SignIn
from .security.signer import Seal

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
_TEMPLATES = Path(__file__).parent / "templates"
_KEPT_SECONDS = 30
_GRACE_SECONDS = 3


def build_app(
    commands: Commands,
    pulse: Pulse,
    auth: SignIn,
    settings: Settings,
    *,
    hub_token: str,
    crypt_key: str,
    metrics_token: str = "",
    clock: Clock = time.time,
    lifespan: Lifespan | None = None,
    idling: Idling | None = None,
    accounts: Accounts | None = None,
    vitals: Vitals | None = None,
    checks: Mapping[str, Check] | None = None,
    courses: CourseDesk | None = None,
) -> FastAPI:
    """The service's web side.

    Args:
        auth: asks the hub who somebody is: ``HubSignIn.of(settings, service_token)``.
        hub_token: with it the hub's spawners call.
        crypt_key: signs cookies and form tokens; whoever is signed in stays so while it stays.
        lifespan: what shall run as long as the application does (the scheduling loop);
            the pulse is bound to the event loop before it is entered.
        idling: the one that the loop looks with; without it sessions are not looked at.
        accounts: Carrel's own, for administrators to change.
        metrics_token: reads ``/metrics``; without one only tokens of the hub do.
        vitals: signs of life of the loop; ``checks``: what else ``/readyz`` asks.
        courses: their desk; without one courses are forgotten with the process.
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        pulse.bind()
        if lifespan is None:
            yield
        else:
            async with lifespan(app):
                yield

    app = FastAPI(
        title="Carrel",
        version="1",
        lifespan=life,
        openapi_url=f"{errors.API_PREFIX}v1/openapi.json",
        docs_url=None,  # would load its scripts from another host
        redoc_url=None,
        redirect_slashes=False,
    )
    seal, streams, signs = Seal(crypt_key), Streams(pulse), vitals or Vitals()
    app.state.web = Web(
        commands=commands,
        claims=Claims(commands),
        changing=Changing(commands),
        extending=Extending(commands),
        quotes=Quotes(commands),
        idling=idling or Idling(commands, settings.idle_countdown_seconds),
        administration=Administration(commands, accounts),
        courses=courses or _forgetful(commands),
        groups=GroupBook(commands, clock),
        figures=Figures(commands),
        metrics=Metrics(commands, signs, streams),
        readiness=Readiness({"loop": partial(going_round, signs), **(checks or {})}),
        gate=Gate(auth, seal, Csrf(seal, settings.url), hub_token, metrics_token),
        seal=seal,
        streams=streams,
        looks=Looks(commands, pulse),
        settings=settings,
        templates=_templates(),
        clock=clock,
    )
    _route(app)
    errors.install(app)
    app.add_exception_handler(guests.SignInFirst, guests.on_sign_in_first)
    schema.describe(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(SafeHeaders)
    app.add_middleware(Tracing)
    return app


def _forgetful(commands: Commands) -> CourseDesk:
    return CourseDesk(commands, MemoryCourseStore(commands.store), MemoryBlobs())


def _route(app: FastAPI) -> None:
    api = f"{errors.API_PREFIX}v1"
    site = SERVICE_PREFIX.rstrip("/")
    # Routes are tried one after the other: people wait for pages.
    for page in (pages, list_pages, history_pages, session_pages, submit_pages, job_pages):
        app.include_router(page.router, prefix=site)
    for page in (admin_pages, calendar_pages, image_pages, grading_pages, signing_in):
        app.include_router(page.router, prefix=site)
    app.include_router(assignment_pages.router, prefix=site)
    app.include_router(sessions.pages, prefix=site)
    for page in (course_pages, teaching_pages, release_pages, graded_pages):
        app.include_router(page.router, prefix=site)
    app.include_router(reports.router, prefix=api)
    app.include_router(requests.router, prefix=api)
    app.include_router(history_routes.router, prefix=api)
    app.include_router(session_routes.router, prefix=api)
    app.include_router(admin_routes.router, prefix=api)
    app.include_router(calendar_routes.router, prefix=api)
    app.include_router(image_routes.router, prefix=api)
    app.include_router(course_routes.router, prefix=api)
    app.include_router(student_routes.router, prefix=api)
    app.include_router(exchange_routes.router, prefix=api)
    app.include_router(sessions_module.router, prefix=api)
    app.include_router(changes.router, prefix=api)
    for prefix in (site, ""):
        app.include_router(monitoring.router, prefix=prefix)
    assets.install(app)

    @app.get(site, include_in_schema=False)
    def without_slash() -> RedirectResponse:
        return RedirectResponse(SERVICE_PREFIX)


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # a page has dozens of parts, and each would be looked for on disk
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters())
    environment.globals.update(
        prefix=SERVICE_PREFIX,
        wording=wording,
        usage_words=usage_words,
        wait_url=wait_url,
        server_url=server_url,
        drawn=drawn_once(environment),
    )
    return environment


class Server(uvicorn.Server):
    """uvicorn that ends the open event streams first, instead of waiting for them for ever."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    @classmethod
    def of(cls, app: FastAPI, *, port: int, host: str = LOCALHOST) -> Server:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            server_header=False,
            # The proxy is on this machine and says whether people come by https. Nobody else
            # has this address: what comes from a container carries the container's own.
            proxy_headers=True,
            forwarded_allow_ips=[LOCALHOST, host],
            # The proxy closes a connection that is idle before this end does (hub/proxy).
            timeout_keep_alive=_KEPT_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            log_config=None,
        )
        web: Web = app.state.web
        return cls(config, web.streams)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)
