"""``carrel plan``: the demand of the courses for devices in a term."""

from __future__ import annotations

from pathlib import Path

import click

from ..client import Client
from ..messages import semester_plan as plan_messages
from .common import display
from .common.client_command import ClientCommand, json_option, site_option
from .common.target_file import csv_option, write_csv


@click.group("plan")
def plan_command() -> None:
    """Plan the devices of the courses.

    \b
    Example:
      carrel plan semester
    """


@plan_command.command("semester", cls=ClientCommand)
@click.option("--term", default="", metavar="TERM", help="A term; default: the running one.")
@csv_option("Write the demand by day and course as CSV.")
@json_option
@site_option
def semester_command(*, term: str, csv_file: Path | None, as_json: bool, site: str | None) -> None:
    """Show the demand before due dates, its clashes, and reservations that would help.

    For administrators. The work of a student comes from usage before earlier due dates of the
    course, or from trial runs, or from the limits of the assignment. The page *Semester plan* makes
    the proposed reservations with a button.

    \b
    Examples:
      carrel plan semester
      carrel plan semester --term winter --csv demand.csv
    """
    with Client.from_environment(site) as client:
        found = client.semester_plan(term)
    if csv_file is not None:
        write_csv(csv_file, plan_messages.csv_rows(found))
    if as_json:
        display.as_json(found)
        return
    if csv_file is not None:
        click.echo(f"Wrote the demand to {display.printable(str(csv_file))}.")
        return
    rows = [list(row) for row in plan_messages.day_rows(found)]
    if rows:
        head = [each.upper() for each in plan_messages.DAY_HEAD]
        display.table(head, rows, right=",".join(head[1:3]))
        click.echo()
    for title, lines in (
        ("Clashes", [plan_messages.clash(each) for each in found.clashes]),
        ("Proposed reservations", [plan_messages.proposal(each) for each in found.proposals]),
        ("Notes", found.notes),
    ):
        if lines:
            click.echo(f"{title}:")
            for line in lines:
                click.echo(f"  {line}")


COMMANDS: dict[str, click.Command] = {"plan": plan_command}
