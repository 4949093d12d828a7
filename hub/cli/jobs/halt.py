"""``carrel halt``: let a running job save its work, and stop it."""

from __future__ import annotations

import sys
import time

import click

from ...client import Client
from ..common import display, exit_status
from ..common.client_command import WaitingCommand, json_option, request_argument, site_option
from ..common.wait import wait_for


@click.command("halt", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@request_argument
@click.option("--reason", default="", metavar="TEXT", help="Reason, shown to the owner.")
@click.option("--wait", "waits", is_flag=True, help="Wait until it has ended.")
@json_option
@site_option
def halt_command(
    *, request_id: str, reason: str, waits: bool, as_json: bool, site: str | None
) -> None:
    """Let a running job save its work, and stop it. `carrel resume` goes on from there.

    The job gets a notice and the save signal. It ends when it has saved its work: a notebook after
    the current cell, any job after it has called carrel.checkpoint() or carrel.saved(). What still
    runs at the end of the grace period is stopped. To stop a job at once, cancel it.

    \b
    Examples:
      carrel halt j-7k2m4qpz
      carrel halt j-7k2m4qpz --wait; carrel resume j-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        found = client.halt(request_id, reason)
        if as_json and not waits:
            display.as_json(found)
        elif not waits:
            click.echo(display.halted(found, time.time()))
        if waits:
            sys.exit(wait_for(client, (request_id,), None, as_json, follow=False))


COMMANDS: dict[str, click.Command] = {"halt": halt_command}
