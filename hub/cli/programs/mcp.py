"""``carrel mcp``: the tools and resources of a site for programs, by the Model Context Protocol."""

from __future__ import annotations

import importlib.util
import os

import click

from ...client import current_credentials
from ...errors import InvalidArgument
from ..common.client_command import ClientCommand, site_option


@click.command("mcp", cls=ClientCommand)
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve streamable HTTP on this port instead of standard input and output.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="With --http: the address of this machine to listen on.",
)
@site_option
def mcp_command(*, port: int | None, host: str, site: str | None) -> None:
    """Serve the Model Context Protocol, for agents and other programs.

    It acts with the token of a program in CARREL_TOKEN: create one with `carrel token create`. The
    service enforces its budget. Over HTTP, clients have to send the same token as
    `Authorization: Bearer …`.

    \b
    Examples:
      CARREL_URL=http://127.0.0.1:8000 CARREL_TOKEN=carrel-program-… carrel mcp
      carrel mcp --http 9100
    """
    if importlib.util.find_spec("mcp") is None:
        raise click.ClickException(
            "`carrel mcp` needs the library mcp. Install it with: pip install 'carrel[mcp]'"
        )
    token = os.environ.get("CARREL_TOKEN", "")
    if not token:
        raise InvalidArgument(
            "CARREL_TOKEN is not set.",
            accepted="The token of a program: carrel token create --program NAME --device-hours N",
        )
    credentials = current_credentials(site)
    from ...mcp_server import server  # noqa: PLC0415  # needs the extra mcp

    if port is None:
        server.serve_stdio(credentials.url, token)
    else:
        server.serve_http(credentials.url, token, host=host, port=port)


COMMANDS: dict[str, click.Command] = {"mcp": mcp_command}
