"""``carrel unused``: what requests held and did not use in a week."""

from __future__ import annotations

import click

from ..client import Client
from ..messages import efficiency as messages
from ..schemas import parsers
from .common import display
from .common.client_command import ClientCommand, json_option, site_option


@click.command("unused", cls=ClientCommand)
@click.option("--week", metavar="DAY", help="The week of this day, such as 2026-11-23 (UTC).")
@click.option("--group", metavar="NAME", default="", help="All users of a group that you teach.")
@json_option
@site_option
def unused_command(*, week: str | None, group: str, as_json: bool, site: str | None) -> None:
    """Show what your sessions and jobs held and did not use this week.

    Listed are those that used their devices by less than 30 % on average. HELD and NOT USED are
    device-hours; IDLE is the part of the time in which the devices did nothing. With --group,
    teachers see a week of their group once it has ended: by default the last one. Weeks begin on
    Monday. Nothing follows from this report by itself.

    \b
    Examples:
      carrel unused
      carrel unused --week 2026-11-16
      carrel unused --group cs101
    """
    at = None if week is None else parsers.day(week)
    with Client.from_environment(site) as client:
        found = client.efficiency(week=at, group=group)
    if as_json:
        display.as_json(found)
        return
    click.echo(messages.summary(found))
    if not found.rows:
        click.echo(messages.none_listed(found))
        return
    click.echo()
    heads = [head.upper() for head in messages.HEADS]
    display.table(
        heads, [list(messages.cells(row)) for row in found.rows], right="HELD,USED,IDLE,NOT USED"
    )
    if found.left_out:
        click.echo(f"{found.left_out} more are not listed.")


COMMANDS: dict[str, click.Command] = {"unused": unused_command}
