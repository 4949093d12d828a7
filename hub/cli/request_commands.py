"""What people do with requests that exist: list, show, read, cancel, fetch."""

from __future__ import annotations

import codecs
import time
from pathlib import Path

import click

from ..client import LIVE_STATES, Client
from ..errors import InvalidInput
from ..scheduling.lifecycle import State
from . import printing
from .client_base import ClientCommand, json_option, request_argument, site_option


@click.command("ps", cls=ClientCommand)
@click.option("--all", "-a", "everything", is_flag=True, help="Also what has ended.")
@click.option(
    "--state",
    "states",
    metavar="STATE",
    multiple=True,
    help=f"Only in this state: {', '.join(State)}. May be repeated.",
)
@click.option(
    "--everybody",
    is_flag=True,
    help="Of all people whom you may see, with owners: teachers see their groups, "
    "administrators everything.",
)
@click.option(
    "--limit",
    metavar="N",
    default=100,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The newest N.",
)
@json_option
@site_option
def ps_command(  # noqa: PLR0917  # one argument per option
    everything: bool,
    states: tuple[str, ...],
    everybody: bool,
    limit: int,
    as_json: bool,
    site: str | None,
) -> None:
    """List your sessions and jobs, newest first; by default those that have not ended.

    \b
    Examples:
      carrel ps
      carrel ps --all --state failed --state timed_out
      carrel ps --json | jq -r '.requests[].id'
    """
    wanted = tuple(state.replace(" ", "_") for state in states)
    chosen = wanted or (() if everything else LIVE_STATES)
    with Client.from_environment(site) as client:
        found = client.requests(states=chosen, mine=not everybody, limit=limit)
    if as_json:
        printing.as_json({"requests": found})
    elif found:
        printing.requests_table(found, time.time(), owners=everybody)
    else:
        click.echo("Nothing." if everything or wanted else "Nothing waits or runs. See also: --all")


@click.command("show", cls=ClientCommand)
@request_argument
@json_option
@site_option
def show_command(request_id: str, as_json: bool, site: str | None) -> None:
    """Show everything about one request: place and reason, devices, progress, cause, use.

    \b
    Example:
      carrel show j-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        found = client.request(request_id)
    if as_json:
        printing.as_json(found)
    else:
        printing.request_details(found, time.time())


@click.command("pool", cls=ClientCommand)
@json_option
@site_option
def pool_command(as_json: bool, site: str | None) -> None:
    """List the devices of the pool.

    \b
    STATE is
      free   can be lent now
      yours  works for you
      taken  lent to somebody
      busy   used by a process from outside Carrel
      sick   set aside because of errors
      gone   does not answer any more

    \b
    Example:
      carrel pool
    """
    with Client.from_environment(site) as client:
        found = client.pool()
    if as_json:
        printing.as_json(found)
    else:
        printing.pool_table(found)


@click.command("usage", cls=ClientCommand)
@click.option("--ledger", is_flag=True, help="Also every line of the ledger behind the sums.")
@json_option
@site_option
def usage_command(ledger: bool, as_json: bool, site: str | None) -> None:
    """Show the device-seconds that you have used, by group.

    CHARGED stands in the ledger; OPEN has been used since its last line.

    \b
    Examples:
      carrel usage
      carrel usage --ledger
    """
    with Client.from_environment(site) as client:
        found = client.usage()
    if as_json:
        printing.as_json(found)
        return
    printing.usage_table(found)
    if ledger and found.ledger:
        click.echo()
        printing.ledger_table(found.ledger, time.time())


@click.command("logs", cls=ClientCommand)
@request_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until it has ended.")
@json_option
@site_option
def logs_command(request_id: str, follow: bool, as_json: bool, site: str | None) -> None:
    """Print what a job has printed so far.

    Its last line, which begins with `carrel:`, says how it ended. With --json, one object a
    line: {"text": …}.

    \b
    Examples:
      carrel logs j-7k2m4qpz
      carrel logs -f j-7k2m4qpz
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with Client.from_environment(site) as client:
        for part in client.follow_log(request_id) if follow else client.whole_log(request_id):
            if not as_json:
                click.echo(part, nl=False)
            elif text := decoder.decode(part):
                printing.as_json({"text": text})


@click.command("cancel", cls=ClientCommand)
@click.argument("request_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@site_option
def cancel_command(request_ids: tuple[str, ...], as_json: bool, site: str | None) -> None:
    """Cancel jobs or sessions. What a job has computed so far is kept in its output.

    \b
    Examples:
      carrel cancel j-7k2m4qpz
      carrel cancel j-7k2m4qpz s-3nd5wq2a
    """
    with Client.from_environment(site) as client:
        for request_id in request_ids:
            found = client.cancel(request_id)
            if as_json:
                printing.as_json(found)
            else:
                click.echo(printing.cancelled(found))


@click.command("output", cls=ClientCommand)
@request_argument
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="File or folder to write it to, - for standard output; by default its own name, in "
    "this folder.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@json_option
@site_option
def output_command(
    request_id: str, target: Path | None, force: bool, as_json: bool, site: str | None
) -> None:
    """Fetch the executed notebook of a job; of one that still runs, as far as it is.

    \b
    Examples:
      carrel output j-7k2m4qpz
      carrel output j-7k2m4qpz -o results/first.ipynb
      carrel output j-7k2m4qpz -o - | jupyter nbconvert --stdin --to html --stdout
    """
    with Client.from_environment(site) as client:
        request = client.request(request_id)
        found = client.output(request_id)
    if target == Path("-"):
        click.echo(found.content, nl=False)
        return
    # The name comes from elsewhere: only its last part is used, in this folder.
    own = Path(Path(found.name.replace("\\", "/")).name or f"{request_id}.ipynb")
    path = own if target is None else target / own if target.is_dir() else target
    _write(path, found.content, force=force)
    if as_json:
        printing.as_json({"file": str(path), "bytes": len(found.content), "ended": request.ended})
        return
    click.echo(f"Wrote {path}" + ("." if request.ended else f" as far as {request.id} is."))


def _write(path: Path, content: bytes, *, force: bool) -> None:
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise InvalidInput(
            f"{path} is there already.", accepted="Give another name with -o, or --force."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
