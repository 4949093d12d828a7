"""Build the MCP server, and serve it over standard input and output or over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations

from ... import __version__
from ..client import SiteUrl
from ..client.transport.site_url import is_loopback
from ..errors import CarrelError, NotFound
from . import documents
from .bearer import BearerOnly
from .calls import client
from .tools import Tools, as_text, sentence

PATH: Final = "/mcp"
MOST_SESSIONS: Final = 20
"""Sessions over HTTP, each with at most one stream of its own."""
IDLE_SECONDS: Final = 600.0
_INSTRUCTIONS = (
    "Carrel runs notebooks and commands as jobs on one shared pool of devices. You have a budget "
    "in device-seconds. Ask quote, or submit with dry_run, what a job costs; submit it; follow it "
    "with status (wait_seconds up to 60); read logs and outputs. Cancel what you do not need."
)
_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)


def build(url: str, token: str) -> MCPServer[Any]:
    """Return the server for a site and the token of a program."""
    calls = client(url, token)
    tools = Tools(calls)

    server = MCPServer[Any](
        "carrel",
        title="Carrel",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        website_url=calls.site.base,
    )
    for tool, kind in (
        (tools.submit, _WRITES),
        (tools.status, _READS),
        (tools.logs, _READS),
        (tools.outputs, _READS),
        (tools.quote, _READS),
        (tools.cancel, _ENDS),
        (tools.pool, _READS),
    ):
        server.add_tool(tool, annotations=kind)
    _add_resources(server, tools, calls.site)
    return server


def _add_resources(server: MCPServer[Any], tools: Tools, site: SiteUrl) -> None:
    @server.resource(
        "carrel://program", title="This program", description="Its budget, and what is left of it."
    )
    async def program() -> str:
        try:
            return as_text((await tools.client.own_program()).model_dump(mode="json"))
        except CarrelError as error:
            raise ResourceError(sentence(error)) from error

    @server.resource(
        "carrel://jobs/{job}",
        title="A job",
        description="Everything about one job of this program, as JSON.",
        mime_type="application/json",
    )
    async def job(job: str) -> str:
        with _errors_about_a_job():
            return as_text((await tools.client.request(job)).model_dump(mode="json"))

    @server.resource(
        "carrel://receipts/{job}",
        title="The receipt of a job",
        description="What an ended job ran with, signed by the site: an RO-Crate 1.1.",
        mime_type="application/ld+json",
    )
    async def receipt(job: str) -> str:
        with _errors_about_a_job():
            return (await tools.client.receipt(job)).decode()

    for name in documents.PAGES:
        read = partial(_page, site, name)
        server.resource(f"carrel://docs/{name}", name=name, description=f"Documentation: {name}.")(
            read
        )


@contextmanager
def _errors_about_a_job() -> Iterator[None]:
    """Turn errors of the service into those of the protocol."""
    try:
        yield
    except NotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    except CarrelError as error:
        raise ResourceError(sentence(error)) from error


async def _page(site: SiteUrl, name: str) -> str:
    try:
        return await documents.page(site, name)
    except CarrelError as error:
        raise ResourceError(str(error)) from error


def serve_stdio(url: str, token: str) -> None:
    """Serve one client on standard input and output, until it closes them."""
    asyncio.run(build(url, token).run_stdio_async())


def http_app(url: str, token: str, *, host: str, port: int) -> BearerOnly:
    """Return the application for streamable HTTP.

    The library refuses other hosts and origins than this one (DNS rebinding); calls without the
    token of the program are refused before that.
    """
    names = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else [host]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:{port}" for name in names],
        allowed_origins=[f"http://{name}:{port}" for name in names],
    )
    app = build(url, token).streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        transport_security=security,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
    )
    return BearerOnly(app, token)


def serve_http(url: str, token: str, *, host: str, port: int) -> None:
    """Serve clients over HTTP at ``PATH`` until the process is told to stop."""
    import uvicorn  # noqa: PLC0415  # of the library mcp

    app = http_app(url, token, host=host, port=port)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)
