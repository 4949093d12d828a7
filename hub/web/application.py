"""Puts the web layer together: one FastAPI application under the service's prefix."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import RedirectResponse

from .. import wording
from ..commands import Commands
from ..config import SERVICE_PREFIX, Settings
from ..ports.world import Clock
from ..pulse import Pulse
from . import (
    assets,
    changes,
    errors,
    guests,
    job_pages,
    list_pages,
    pages,
    reports,
    routes,
    schema,
    signing_in,
    submit_pages,
)
from .auth import SignIn
from .bodies import BodyLimit
from .context import Web
from .csrf import Csrf
from .gate import Gate
from .headers import SafeHeaders
from .rendering import filters
from .seal import Seal
from .sharing import Looks
from .streams import Streams
from .waiting import server_url, wait_url

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
_TEMPLATES = Path(__file__).parent / "templates"
_GRACE_SECONDS = 3


def build_app(
    commands: Commands,
    pulse: Pulse,
    auth: SignIn,
    settings: Settings,
    *,
    hub_token: str,
    crypt_key: str,
    clock: Clock = time.time,
    lifespan: Lifespan | None = None,
) -> FastAPI:
    """The service's web side.

    Args:
        auth: asks the hub who somebody is: ``HubSignIn.of(settings, service_token)``.
        hub_token: with it the hub's spawners call.
        crypt_key: signs cookies and form tokens; whoever is signed in stays so while it stays.
        lifespan: what shall run as long as the application does (the scheduling loop);
            the pulse is bound to the event loop before it is entered.
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
    seal = Seal(crypt_key)
    app.state.web = Web(
        commands=commands,
        gate=Gate(auth, seal, Csrf(seal, settings.url), hub_token),
        seal=seal,
        streams=Streams(pulse),
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
    return app


def _route(app: FastAPI) -> None:
    api = f"{errors.API_PREFIX}v1"
    site = SERVICE_PREFIX.rstrip("/")
    app.include_router(reports.router, prefix=api)
    app.include_router(routes.router, prefix=api)
    app.include_router(changes.router, prefix=api)
    app.include_router(signing_in.router, prefix=site)
    for router in (pages.router, list_pages.router, submit_pages.router, job_pages.router):
        app.include_router(router, prefix=site)
    assets.install(app)

    @app.get(site, include_in_schema=False)
    def without_slash() -> RedirectResponse:
        return RedirectResponse(SERVICE_PREFIX)


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters())
    environment.globals.update(wording=wording, wait_url=wait_url, server_url=server_url)
    return environment


class Server(uvicorn.Server):
    """uvicorn that ends the open event streams first, instead of waiting for them for ever."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    @classmethod
    def of(cls, app: FastAPI, *, port: int, host: str = "127.0.0.1") -> Server:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            server_header=False,
            # The proxy is on this machine and says whether people come by https.
            proxy_headers=True,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            log_config=None,
        )
        web: Web = app.state.web
        return cls(config, web.streams)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)
