"""``carrel ps``, ``queue``, ``show``, ``logs`` and ``cancel``."""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import click

from ...client import LIVE_STATES, Client
from ...errors import InvalidInput, NotFound
from ...messages import units
from ...scheduling.model.states import State
from ...schemas import PipelineOut, RequestOut, parsers
from ...schemas.sweeps import ReportOut
from ..common import display
from ..common.client_command import ClientCommand, json_option, request_argument, site_option
from ..common.notes import confirmed
from ..common.terminal import TerminalSanitizer


@click.command("ps", cls=ClientCommand)
@click.option("--all", "-a", "everything", is_flag=True, help="Include ended requests.")
@click.option(
    "--state",
    "states",
    metavar="STATE",
    multiple=True,
    help=f"Only in this state: {', '.join(State)}. May be repeated.",
)
@click.option(
    "--kind",
    type=click.Choice(["job", "session", "grading"]),
    help="Only jobs, only sessions, or only checks and grading.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only with this label; may be repeated: all must match.",
)
@click.option(
    "--everybody",
    is_flag=True,
    help="Include all users that you may see, with owners: teachers see their groups, "
    "administrators all.",
)
@click.option("--owner", metavar="NAME", help="Only requests of this user, if you may see them.")
@click.option(
    "--text",
    default="",
    help="Only with this text in the ID, the name of the session or notebook, or the command.",
)
@click.option("--why", "with_why", is_flag=True, help="Include the reason for each queued request.")
@click.option(
    "--limit",
    metavar="N",
    default=100,
    show_default=True,
    type=click.IntRange(min=1),
    help="The newest N.",
)
@json_option
@site_option
def ps_command(
    *,
    everything: bool,
    states: tuple[str, ...],
    kind: str | None,
    labels: tuple[str, ...],
    everybody: bool,
    owner: str | None,
    text: str,
    with_why: bool,
    limit: int,
    as_json: bool,
    site: str | None,
) -> None:
    """List your sessions and jobs, newest first; by default those that have not ended.

    \b
    Examples:
      carrel ps
      carrel ps --all --state failed --state timed_out
      carrel ps --why
      carrel ps --all --kind job --label sweep=7
      carrel ps --json | jq -r '.requests[].id'
    """
    wanted = tuple(state.replace(" ", "_") for state in states)
    chosen = wanted or (() if everything else LIVE_STATES)
    others = everybody or owner is not None
    with Client.from_environment(site) as client:
        found = client.requests(
            kind=kind,
            states=chosen,
            labels=dict(parsers.label(text) for text in labels),
            owner=owner,
            text=text,
            mine=not others,
            limit=limit,
        )
    if as_json:
        display.as_json({"requests": found})
    elif found:
        display.requests_table(found, time.time(), owners=others, why=with_why)
        if len(found) == limit:
            click.echo(f"The newest {limit}; more with --limit.")
    elif labels:
        click.echo("No request has this label." + ("" if everything or wanted else " (See --all.)"))
    else:
        click.echo(
            "No request matches."
            if everything or wanted
            else "No queued or running requests. See also: --all"
        )


@click.command("queue", cls=ClientCommand)
@json_option
@site_option
def queue_command(as_json: bool, site: str | None) -> None:
    """Show the queue in order, with reasons.

    Owner and work are shown for your own requests and for others that you may see.

    \b
    Examples:
      carrel queue
      carrel queue --json | jq '.queue[] | select(.yours)'
    """
    with Client.from_environment(site) as client:
        found = client.queue()
    if as_json:
        display.as_json(found)
    elif found.queue:
        display.queue_table(found, time.time())
    else:
        click.echo("The queue is empty.")


@click.command("show", cls=ClientCommand)
@request_argument
@json_option
@site_option
def show_command(request_id: str, as_json: bool, site: str | None) -> None:
    """Show everything about one request: position and reason, devices, progress, cause, usage.

    \b
    Example:
      carrel show j-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        found = client.request(request_id)
        reported = [] if as_json else _reported(client, found)
        pipeline = None if as_json else _pipeline(client, found)
    if as_json:
        display.as_json(found)
    else:
        display.request_details(found, time.time(), reported, pipeline)


def _pipeline(client: Client, request: RequestOut) -> PipelineOut | None:
    if request.kind != "job":
        return None
    with suppress(NotFound):  # an older service
        return client.pipeline(request.id)
    return None


def _reported(client: Client, request: RequestOut) -> Sequence[ReportOut]:
    if request.kind != "job" or request.lease is None or request.sweep is not None:
        return []
    with suppress(NotFound):  # an older service
        return client.reports(request.id, points=4).reports
    return []


@click.command("logs", cls=ClientCommand)
@request_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the log until it has ended.")
@click.option(
    "--member",
    type=click.IntRange(min=0),
    default=0,
    metavar="RANK",
    help="The log of this member of a job of several members; by default of member 0.",
)
@click.option("--raw", is_flag=True, help="Print all bytes unchanged, even in a terminal.")
@json_option
@site_option
def logs_command(
    *, request_id: str, follow: bool, member: int, raw: bool, as_json: bool, site: str | None
) -> None:
    """Print the log of a job so far.

    Its last line, which begins with `carrel:`, states how it ended. A terminal gets only text and
    colours, so that a job cannot control it; a file or a pipe gets all bytes.
    With --json, one object per line: {"text": …}.

    \b
    Examples:
      carrel logs j-7k2m4qpz
      carrel logs -f j-7k2m4qpz
      carrel logs j-7k2m4qpz > job.log
      carrel logs j-7k2m4qpz --member 1
    """
    with Client.from_environment(site) as client:
        parts = (
            client.follow_log(request_id, member=member)
            if follow
            else client.whole_log(request_id, member=member)
        )
        if as_json:
            _log_as_json(parts)
        elif raw or not sys.stdout.isatty():
            for part in parts:
                click.echo(part, nl=False)
        else:
            _log_in_terminal(parts)


def _log_as_json(parts: Iterable[bytes]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in parts:
        if text := decoder.decode(part):
            display.as_json({"text": text})


def _log_in_terminal(parts: Iterable[bytes]) -> None:
    sanitizer = TerminalSanitizer()
    try:
        for part in parts:
            click.echo(sanitizer.feed(part), nl=False)
    finally:
        click.echo(sanitizer.close(), nl=False)


@click.command("cancel", cls=ClientCommand)
@click.argument("request_ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="All your requests with this label that have not ended; may be repeated: all must match.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--reason", default="", metavar="TEXT", help="Reason, shown to the owner.")
@json_option
@site_option
def cancel_command(
    *,
    request_ids: tuple[str, ...],
    labels: tuple[str, ...],
    yes: bool,
    reason: str,
    as_json: bool,
    site: str | None,
) -> None:
    """Cancel jobs or sessions. The output of a job so far is kept.

    With --label it shows the number of matching requests, and asks for confirmation.

    \b
    Examples:
      carrel cancel j-7k2m4qpz
      carrel cancel j-7k2m4qpz s-3nd5wq2a
      carrel cancel --label sweep=7
      carrel cancel --label sweep=7 --yes --json
      carrel cancel j-7k2m4qpz --reason 'The node needs a new fan.'
    """
    if bool(request_ids) == bool(labels):
        raise click.UsageError("Give either IDs or --label KEY=VALUE.")
    wanted = dict(parsers.label(text) for text in labels)
    with Client.from_environment(site) as client:
        chosen = list(request_ids) or _labelled(client, wanted, yes=yes)
        if not chosen and not as_json:
            click.echo("No queued or running request has this label.")
        for request_id in chosen:
            found = client.cancel(request_id, reason)
            if as_json:
                display.as_json(found)
            else:
                click.echo(display.cancelled(found))


def _labelled(client: Client, labels: dict[str, str], *, yes: bool) -> list[str]:
    """Return the requests to cancel after confirmation; an older service does not filter them."""
    found = [
        request
        for request in client.requests(states=LIVE_STATES, labels=labels, limit=None)
        if labels.items() <= request.labels.items()
    ]
    if not found or yes:
        return [request.id for request in found]
    running = sum(request.state != "queued" for request in found)
    these = units.count(len(found), "request")
    if not confirmed(f"{these} with {_written(labels)}, {running} of them running. Cancel all?"):
        raise InvalidInput("Nothing was cancelled.", accepted="Add --yes in scripts.")
    return [request.id for request in found]


def _written(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


COMMANDS: dict[str, click.Command] = {
    "ps": ps_command,
    "show": show_command,
    "logs": logs_command,
    "cancel": cancel_command,
    "queue": queue_command,
}
