"""``carrel submit`` and ``carrel wait``: a notebook becomes a job, its end an exit status."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue, ValidationError

from ..client import Client
from ..errors import InvalidInput
from ..wire import JobIn, RequestOut
from . import following, printing, values
from .client_base import WaitingCommand, json_option, site_option


@click.command("submit", cls=WaitingCommand, epilog=following.STATUS_HELP)
@click.argument("path", metavar="NOTEBOOK", type=click.Path(path_type=Path))
@click.option(
    "-p",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="A parameter of the notebook. VALUE is a number, true, false or null if it looks like "
    "one, and text otherwise. May be repeated.",
)
@click.option(
    "-r",
    "--raw",
    "raw",
    nargs=2,
    multiple=True,
    metavar="NAME TEXT",
    help="A parameter whose value is text, whatever it looks like.",
)
@click.option(
    "--devices",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Whole devices (GPUs); 0 for a job on CPU.",
)
@click.option(
    "--time",
    "limit",
    default="1h",
    show_default=True,
    metavar="SPAN",
    help=f"Time limit: {values.TIME_HELP}.",
)
@click.option(
    "--group",
    metavar="GROUP",
    help="Who it is charged to; may be left out by members of one group.",
)
@click.option(
    "--output",
    default="",
    metavar="NAME",
    help="File name of the executed notebook; that of the notebook itself by default.",
)
@click.option("--kernel", default="", metavar="NAME", help="Kernel, instead of the notebook's.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="A note for yourself, shown by `carrel show`. May be repeated.",
)
@click.option(
    "--wait", "wait_for_end", is_flag=True, help="Wait for its end, which is the exit status."
)
@json_option
@site_option
def submit_command(  # noqa: PLR0917  # one argument per option
    path: Path,
    parameters: tuple[tuple[str, str], ...],
    raw: tuple[tuple[str, str], ...],
    devices: int,
    limit: str,
    group: str | None,
    output: str,
    kernel: str,
    labels: tuple[str, ...],
    wait_for_end: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Run a notebook as a job.

    The file is sent as it is now; the job goes on when this terminal, the browser or the
    service goes away. It runs in your home folder at the site, and its output notebook is
    saved after each cell.

    \b
    Examples:
      carrel submit train.ipynb --devices 1 --time 30m --group cs101
      carrel submit train.ipynb -p lr 0.05 -p name '"7"' -r version 1.10
      carrel submit train.ipynb --time 2h --wait || echo "it did not succeed"
      job=$(carrel submit train.ipynb --json | jq -r .id)
    """
    notebook = values.notebook(path)
    given: dict[str, JsonValue] = {name: values.parameter(text) for name, text in parameters}
    fields = {
        "notebook": notebook,
        "parameters": given | dict(raw),
        "devices": devices,
        "seconds": values.seconds(limit),
        "output": output,
        "kernel": kernel,
        "labels": dict(values.label(text) for text in labels),
        # One key per invocation: however often it is sent, it is one job.
        "idempotency_key": f"cli-{secrets.token_hex(16)}",
    }
    with Client.from_environment(site) as client:
        request = client.submit(_job(fields | {"group": group or _only_group(client)}))
        if not wait_for_end:
            _submitted(request, as_json=as_json, hint=True)
            return
        if not as_json:
            _submitted(request, as_json=False, hint=False)
        sys.exit(_wait(client, [request.id], None, as_json=as_json))


def _job(fields: dict[str, object]) -> JobIn:
    try:
        return JobIn.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(
            f"{where}: {first['msg']}.", accepted="See carrel submit --help"
        ) from error


def _only_group(client: Client) -> str:
    groups = client.me().groups
    if len(groups) == 1:
        return groups[0]
    raise InvalidInput(
        "A job is charged to a group, and you are in several."
        if groups
        else "A job is charged to a group, and you are in none: ask a teacher or administrator.",
        accepted=f"Choose one with --group: {', '.join(sorted(groups))}." if groups else "",
    )


def _submitted(request: RequestOut, *, as_json: bool, hint: bool) -> None:
    if as_json:
        printing.as_json(request)
        return
    waits = f" {request.wait.sentence}" if request.wait else ""
    click.echo(f"Submitted {request.id}: {printing.place(request)}.{waits}")
    if hint:
        click.echo(f"See what it prints with: carrel logs -f {request.id}")


@click.command("wait", cls=WaitingCommand, epilog=following.STATUS_HELP)
@click.argument("request_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--timeout", metavar="SPAN", help=f"Wait no longer than this: {values.TIME_HELP}.")
@json_option
@site_option
def wait_command(
    request_ids: tuple[str, ...], timeout: str | None, as_json: bool, site: str | None
) -> None:
    """Wait until all of these have ended. The exit status is that of the worst end.

    \b
    Examples:
      carrel wait j-7k2m4qpz && carrel output j-7k2m4qpz
      carrel wait --timeout 2h j-7k2m4qpz j-5xw3n2aa
    """
    limit = None if timeout is None else float(values.seconds(timeout))
    with Client.from_environment(site) as client:
        sys.exit(_wait(client, request_ids, limit, as_json=as_json))


def _wait(
    client: Client,
    request_ids: Sequence[str],
    timeout: float | None,
    *,
    as_json: bool,
) -> int:
    wanted = list(dict.fromkeys(request_ids))
    latest = {request_id: client.request(request_id) for request_id in wanted}
    for request in latest.values():
        _tell(request, as_json=as_json)
    for change in following.follow_all(client, wanted, timeout):
        before, now = latest[change.request_id], change.item
        if not isinstance(now, RequestOut) or now == before:
            continue
        latest[change.request_id] = now
        # Programs get everything; people need not read that a clock has moved on.
        if as_json or printing.place(now) != printing.place(before) or now.ended:
            _tell(now, as_json=as_json)
    if not all(request.ended for request in latest.values()):
        return following.STILL_RUNNING
    return following.exit_status(list(latest.values()))


def _tell(request: RequestOut, *, as_json: bool) -> None:
    if as_json:
        printing.as_json(request)
    else:
        click.echo(printing.change(request, time.time()))
