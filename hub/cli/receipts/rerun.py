"""``carrel rerun``: run a job again by its receipt."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ...client import Client
from ...provenance.rerun import RerunIn
from ..common import display, exit_status
from ..common.client_command import WaitingCommand, json_option, site_option
from ..common.notes import note
from ..common.request_options import group_option
from ..common.wait import wait_for
from .verify import read_file


@click.command("rerun", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("job", metavar="JOB|FILE")
@click.option(
    "--accept-changes",
    is_flag=True,
    help="Run it also if the image or an input is gone or has changed; its receipt names what.",
)
@click.option("--dry-run", is_flag=True, help="Only show what is gone or has changed.")
@group_option
@click.option("--wait", "waits", is_flag=True, help="Wait until it has ended.")
@json_option
@site_option
def rerun_command(
    *,
    job: str,
    accept_changes: bool,
    dry_run: bool,
    group: str,
    waits: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Run an ended job again, with the same notebook, parameters, image and inputs.

    It is refused if the image, or an input that the receipt has a hash of, is gone or has changed.
    FILE is a receipt, or an executed notebook with its receipt; such a notebook also runs at
    another site than its own.

    \b
    Examples:
      carrel rerun j-7k2m4qpz --wait
      carrel rerun j-7k2m4qpz.receipt.json --dry-run
      carrel rerun train-output.ipynb --site https://other.example.edu --accept-changes
    """
    file = Path(job)
    what = {"file": read_file(file).decode("utf-8", "replace")} if file.is_file() else {"job": job}
    body = RerunIn(accept_changes=accept_changes, dry_run=dry_run, group=group, **what)
    with Client.from_environment(site) as client:
        found = client.rerun(body)
        for change in found.changes:
            note(display.printable(change))
        if found.unchecked:
            note(display.printable("Not compared: " + "; ".join(found.unchecked) + "."))
        if dry_run and not found.changes:
            note("The image and all inputs with a hash are as they were.")
        if as_json:
            display.as_json(found)
        elif found.request is not None:
            click.echo(found.request.id)
        if found.request is not None:
            note(f"When it has ended: carrel diff {found.rerun_of} {found.request.id}")
        if waits and found.request is not None:
            sys.exit(wait_for(client, (found.request.id,), None, as_json, follow=False))


COMMANDS: dict[str, click.Command] = {"rerun": rerun_command}
