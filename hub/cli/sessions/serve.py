"""``carrel serve``: answer calls to a model or function, behind the sign-in of JupyterHub."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urljoin

import click

from ...errors import Unavailable
from ..common import display
from ..common.client_command import ClientCommand, json_option

_PREFIX = "JUPYTERHUB_SERVICE_PREFIX"


@click.command("serve", cls=ClientCommand)
@click.argument("source", required=False)
@click.option("--list", "listed", is_flag=True, help="List what this session serves now.")
@click.option("--name", default="", help="Its name in the address. [that of the file or object]")
@click.option(
    "--deadline",
    type=click.FloatRange(0.001, 100),
    default=10.0,
    show_default=True,
    help="Seconds after which an answer is of no use, unless a call says.",
)
@click.option(
    "--queue",
    "queued",
    type=click.IntRange(1, 100_000),
    default=1024,
    show_default=True,
    help="Most rows that wait; further calls are refused with 429.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 10_000),
    default=64,
    show_default=True,
    help="Most rows that are executed together.",
)
@json_option
def serve_command(
    *,
    source: str | None,
    listed: bool,
    name: str,
    deadline: float,
    queued: int,
    batch: int,
    as_json: bool,
) -> None:
    """Serve a model or function from this session, on its lease, until Ctrl-C.

    SOURCE is a pickle of a fitted estimator, a folder of such pickles (they share equal steps), or
    FILE.py:OBJECT or MODULE:OBJECT: a function of a list of rows, an estimator, a Shelf, or a dict
    of these. Run it in a terminal of a session. Calls need a sign-in, or a token of JupyterHub with
    access to the session.

    \b
    Examples:
      carrel serve classify.py:predict
      carrel serve submissions/ --name ps4
      carrel serve --list
    """
    if listed == bool(source):
        raise click.UsageError("Give a SOURCE, or --list.")
    prefix, site = os.environ.get(_PREFIX), os.environ.get("CARREL_PUBLIC_URL")
    if not prefix or not site:
        raise Unavailable(
            "carrel serve runs in a session: it uses its lease and its sign-in.",
            accepted="Open a terminal in JupyterLab, and run it there.",
        )
    from ....extensions.environment import SERVED_PATH  # noqa: PLC0415 # with those below

    folder = urljoin(site, f"{prefix.rstrip('/')}/{SERVED_PATH}/")
    if source is None:
        _list(folder, as_json=as_json)
        return
    from ....extensions.model_server import served_models, served_sockets  # noqa: PLC0415 # lazily
    from ....extensions.model_server.application import serve  # noqa: PLC0415 # needs tornado
    from ....extensions.model_server.request_queue import RequestQueue  # noqa: PLC0415 # the same

    name = served_sockets.check_name(name or served_sockets.name_of(source))
    queue = RequestQueue(served_models.load(source), batch_rows=batch, queued_rows=queued)
    address = f"{folder}{name}/"

    def ready() -> None:
        if as_json:
            click.echo(display.dumped({"address": address, "models": list(queue.models)}))
        else:
            click.echo(f"Serving {len(queue.models)} models at {address} (Ctrl-C ends it)")

    with served_sockets.published(name) as path:
        asyncio.run(serve(name, queue, path, deadline=deadline, ready=ready))


def _list(folder: str, *, as_json: bool) -> None:
    from ....extensions.model_server import served_sockets  # noqa: PLC0415 # lazily

    found = {name: f"{folder}{name}/" for name in served_sockets.served_names()}
    if as_json:
        click.echo(display.dumped([{"name": each, "address": found[each]} for each in found]))
        return
    for name, address in found.items():
        click.echo(f"{name}  {address}")
    if not found:
        click.echo("This session serves nothing now. Start it with: carrel serve SOURCE")


COMMANDS = {"serve": serve_command}
