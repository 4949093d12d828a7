"""``carrel session``: start, list, claim, keep, extend, open and stop sessions."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import quote

import click

from ...client import LIVE_STATES, Client, public_site
from ...errors import InvalidInput, NotFound, Unavailable
from ...messages import requests as request_messages
from ...messages import units
from ...schemas import RequestOut, SessionIn, parsers
from ..common import display, exit_status
from ..common.client_command import (
    ClientCommand,
    DeviceCount,
    ListOptions,
    WaitingCommand,
    json_option,
    site_option,
)
from ..common.notes import note
from ..common.request_options import group_option, hours_option, model_field, model_option
from .wait import wait_for_session

F = TypeVar("F", bound=Callable[..., object])

_DEFAULT = ("-", "default")
_LEAST_SECONDS = 60
"""Shortest extension."""
_STATUS_HELP = """\b
Exit status of --wait:
  0    it is running, or its device is held for you
  1    it failed
  3    it was cancelled
  4    it reached its time limit
  6    refused, or Carrel is not responding
  130  Ctrl-C: it keeps its position in the queue"""


@click.group("session", cls=ListOptions)
def session_command() -> None:
    """Sessions: start, list, claim, extend and stop them.

    SESSION is the name of a session (`-` for the default one) or the ID of its request.

    \b
    Examples:
      carrel session start --devices 1 --hours 2 --wait
      carrel session start --devices 1 --claim
      carrel session ls
    """


def _devices(function: F) -> F:
    return click.option(
        "--devices",
        type=DeviceCount(min=0),
        default=0,
        show_default=True,
        help="Whole devices (GPUs); 0 for a session on CPU.",
    )(function)


def _session(function: F) -> F:
    return click.argument("session", metavar="SESSION")(function)


@session_command.command("start", cls=WaitingCommand, epilog=_STATUS_HELP)
@_devices
@model_option
@hours_option
@group_option
@click.option("--name", default="", help="Name of an additional session.")
@click.option("--image", default="", help="Image: NAME or NAME@sha256:…; see `carrel images`.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME[:file|:env[=VARIABLE]]",
    help="A secret of `carrel secret`, as for a job. May be repeated.",
)
@click.option(
    "--claim",
    is_flag=True,
    help="Hold the device when it is available, until `carrel session claim`, for a while.",
)
@click.option(
    "--wait",
    "wait",
    is_flag=True,
    help="Wait until it is running (with --claim: until it is held).",
)
@json_option
@site_option
def start_command(
    *,
    devices: int,
    model: str | None,
    hours: float,
    group: str,
    name: str,
    image: str,
    secrets: tuple[str, ...],
    claim: bool,
    wait: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Start a session. It is queued if its devices are not free.

    \b
    Examples:
      carrel session start
      carrel session start --devices 1 --hours 2 --name thesis --wait
      carrel session start --devices 1 --claim
    """
    chosen: dict[str, object] = {"devices": devices, "hours": hours, "group": group}
    chosen |= ({"claim": True} if claim else {}) | ({"image": image} if image else {})
    chosen |= {"secrets": list(secrets)} if secrets else {}
    chosen |= model_field(model)
    options = SessionIn.model_validate(chosen)
    with Client.from_environment(site) as client:
        request = client.start_session("" if name in _DEFAULT else name, options)
        if wait:
            sys.exit(_waited(client, request, as_json=as_json))
        _print(client, request, as_json=as_json)


@session_command.command("ls", cls=ClientCommand)
@json_option
@site_option
def ls_command(as_json: bool, site: str | None) -> None:
    """List your sessions that have not ended.

    \b
    Example:
      carrel session ls
    """
    with Client.from_environment(site) as client:
        found = client.requests(kind="session", states=LIVE_STATES, limit=None)
        now = time.time()
    if as_json:
        display.as_json({"requests": found})
    elif found:
        display.requests_table(found, now, owners=False)
        for each in found:
            if each.claim_by is not None:
                click.echo(_held(each))
    else:
        click.echo("You have no session. Start one with: carrel session start")


@session_command.command("stop", cls=ClientCommand)
@_session
@json_option
@site_option
def stop_command(session: str, as_json: bool, site: str | None) -> None:
    """Stop a session, or take it out of the queue.

    \b
    Example:
      carrel session stop thesis
    """
    with Client.from_environment(site) as client:
        found = client.cancel(_found(client, session).id)
    if as_json:
        display.as_json(found)
    else:
        click.echo(display.cancelled(found))


@session_command.command("claim", cls=WaitingCommand, epilog=_STATUS_HELP)
@_session
@click.option("--wait", "wait", is_flag=True, help="Wait until it is running.")
@json_option
@site_option
def claim_command(session: str, wait: bool, as_json: bool, site: str | None) -> None:
    """Start the session whose device is held for you.

    \b
    Example:
      carrel session claim gpu --wait
    """
    with Client.from_environment(site) as client:
        request = client.claim(_found(client, session).id)
        if wait:
            sys.exit(_waited(client, request, as_json=as_json))
        _print(client, request, as_json=as_json)


@session_command.command("keep", cls=ClientCommand)
@_session
@json_option
@site_option
def keep_command(session: str, as_json: bool, site: str | None) -> None:
    """Keep an idle session that is about to be stopped. You can do this once.

    \b
    Example:
      carrel session keep -
    """
    with Client.from_environment(site) as client:
        found = client.keep(_found(client, session).id)
    if as_json:
        display.as_json(found)
    else:
        click.echo(f"{found.id} is kept; its idle time restarts.")


@session_command.command("keep-place", cls=ClientCommand)
@_session
@json_option
@site_option
def keep_place_command(session: str, as_json: bool, site: str | None) -> None:
    """Open the default session on CPU now, and keep the position in the queue.

    The device of the queued session is held for you when it is available; see `claim`.

    \b
    Example:
      carrel session keep-place -
    """
    with Client.from_environment(site) as client:
        kept = client.keep_place(_found(client, session).id)
        if as_json:
            display.as_json(kept)
            return
        click.echo(
            f"{kept.id} keeps its position as the session "
            f"{request_messages.session_name(kept.server_name)}."
        )
        click.echo(f"The CPU session: {_address(client, '')}")


@session_command.command("extend", cls=ClientCommand)
@_session
@click.option(
    "--time", "span", default="1h", show_default=True, metavar="SPAN", help=parsers.TIME_HELP + "."
)
@click.option(
    "--until",
    metavar="WHEN",
    help="Instead of --time: 2h (from now), or a date and time. Safe to repeat.",
)
@json_option
@site_option
def extend_command(
    *, session: str, span: str, until: str | None, as_json: bool, site: str | None
) -> None:
    """Extend a session (or a job, by its ID), if no other request waits for its devices.

    \b
    Examples:
      carrel session extend -
      carrel session extend thesis --time 30m
      carrel session extend thesis --until 2026-11-21T18:00
    """
    with Client.from_environment(site) as client:
        found = _found(client, session)
        added = parsers.seconds(span) if until is None else _seconds_until(found, until)
        if added:
            found = _extended(client, found, added)
    if as_json:
        display.as_json(found)
        return
    now = time.time()
    end = display.local_time(found.ends_by, now)
    left = units.duration((found.ends_by or now) - now)
    click.echo(f"{found.id} runs until {end} ({left} left).")


def _seconds_until(found: RequestOut, until: str) -> int:
    """Return the extension after which a request runs until a time; 0 if it already does."""
    now = time.time()
    if found.ends_by is None:
        raise InvalidInput(
            f"{found.id} is not running, so its end is unknown.",
            accepted="Use --time, or repeat this when it is running.",
        )
    missing = parsers.moment(until, now) - found.ends_by
    return max(_LEAST_SECONDS, math.ceil(missing)) if missing >= 1 else 0


def _extended(client: Client, before: RequestOut, seconds: int) -> RequestOut:
    """Extend a request; if no response comes, the error shows a command that is safe to repeat."""
    try:
        return client.extend(before.id, seconds, seen=before.seconds)
    except Unavailable as error:
        if before.ends_by is None:
            raise
        until = datetime.fromtimestamp(before.ends_by + seconds, UTC).isoformat(timespec="seconds")
        raise Unavailable(
            error.message,
            accepted="It may have been extended nevertheless. To retry without extending it twice: "
            f"carrel session extend {before.id} --until {until}",
        ) from error


@session_command.command("open", cls=ClientCommand)
@_session
@click.option("--browser", is_flag=True, help="Also open it in a browser of this computer.")
@json_option
@site_option
def open_command(session: str, browser: bool, as_json: bool, site: str | None) -> None:
    """Print the address of a session.

    \b
    Example:
      carrel session open - --browser
    """
    with Client.from_environment(site) as client:
        found = _found(client, session)
        address = _address(client, found.server_name)
    if as_json:
        display.as_json({"id": found.id, "state": found.state, "url": address})
    else:
        click.echo(address)
        if found.state != "running":
            note(f"It is {request_messages.state_meaning(found.state)}.")
    if browser:
        click.launch(address)


def _found(client: Client, session: str) -> RequestOut:
    """Return the user's session of this name that has not ended, or else the request by its ID."""
    name = "" if session in _DEFAULT else session
    mine = client.requests(kind="session", states=LIVE_STATES, limit=None)
    for each in mine:
        if each.server_name == name or each.id == session:
            return each
    if not name:
        raise NotFound(
            "You have no default session that is queued or running.", accepted=_names(mine)
        )
    try:
        return client.request(session)
    except NotFound:
        raise NotFound(
            f"You have no queued or running session {session!r}.", accepted=_names(mine)
        ) from None


def _names(mine: list[RequestOut]) -> str:
    if not mine:
        return "Start one with: carrel session start"
    return f"Your sessions: {', '.join(each.server_name or '- (default)' for each in mine)}."


def _waited(client: Client, request: RequestOut, *, as_json: bool) -> int:
    try:
        found = wait_for_session(client, request, as_json=as_json)
    except KeyboardInterrupt:
        name = request.server_name or "-"
        note(
            f"\n{request.id} keeps its position in the queue. See: carrel session ls. "
            f"Cancel it with: carrel session stop {name}"
        )
        return 130
    if found.ended:
        return exit_status.exit_status([found])
    if not as_json:
        _print(client, found, as_json=False)
    return 0


def _print(client: Client, request: RequestOut, *, as_json: bool) -> None:
    """Print the state of a session, and what to do next."""
    if as_json:
        display.as_json(request)
    elif request.claim_by is not None:
        click.echo(_held(request))
    elif request.state in ("starting", "running"):
        click.echo(f"{request.id}: {_address(client, request.server_name)}")
    else:
        waits = f" {request.wait.sentence}" if request.wait else ""
        click.echo(f"{request.id}: {request_messages.state_name(request.state)}.{waits}")
        if request.claim:
            click.echo("Its device will be held for you; see: carrel session ls")
        else:
            click.echo(f"It starts automatically at {_address(client, request.server_name)}")


def _held(request: RequestOut) -> str:
    now = time.time()
    left = units.duration((request.claim_by or now) - now)
    what = "device is" if request.devices == 1 else "devices are"
    return (
        f"{request.id}: its {what} held for you for {left} more. "
        f"Start it with: carrel session claim {request.server_name or '-'}"
    )


def _address(client: Client, server_name: str) -> str:
    base = f"{public_site(client.site).base}user/{quote(client.me().name, safe='@~')}/"
    return f"{base}{quote(server_name, safe='@~')}/" if server_name else base


COMMANDS: dict[str, click.Command] = {"session": session_command}
