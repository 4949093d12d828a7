"""``carrel term`` and ``carrel reserve``: terms and reservations."""

from __future__ import annotations

import time

import click

from ...config.state_folder import StateFolder
from ...groups.calendar import WHEN_HELP, GroupCalendar
from ...schemas.calendar import ReservationIn
from ..common import display
from ..common.client_command import AddByDefault, ListOptions
from ..common.notes import note
from ..common.operator_options import operator, state_option
from ..common.site_store import site_store

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


@click.group(cls=ListOptions)
def term() -> None:
    """Terms: the periods of budgets.

    \b
    Examples:
      carrel term add winter 2026-10-12 2027-02-15
      carrel group set cs101 --budget 300h/term
    """


@term.command("add", short_help="Create or change a term.")
@click.argument("name")
@click.argument("first")
@click.argument("last")
@state_option
def add_term(*, name: str, first: str, last: str, state: StateFolder) -> None:
    """Create or change a term, from its FIRST to its LAST day, inclusive (UTC).

    \b
    Example:
      carrel term add winter 2026-10-12 2027-02-15
    """
    with site_store(state) as store:
        GroupCalendar(store, time.time).put_term(name, first, last, who=operator())
    click.echo(f"The term {name} is from {first} to {last}.")


@term.command("ls", short_help="List the terms.")
@state_option
@json_option
def list_terms(*, state: StateFolder, as_json: bool) -> None:
    """List the terms.

    \b
    Example:
      carrel term ls
    """
    with site_store(state) as store:
        found = GroupCalendar(store, time.time).terms()
    empty = "There are no terms. Create one with: carrel term add NAME FIRST LAST"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    rows = [[one.name, one.first, one.last, "now" if one.running else ""] for one in found]
    display.table(["TERM", "FIRST", "LAST", ""], rows)


@term.command("rm", short_help="Remove a term.")
@click.argument("name")
@state_option
def remove_term(*, name: str, state: StateFolder) -> None:
    """Remove a term. Budgets per term are then empty on its days.

    \b
    Example:
      carrel term rm winter
    """
    with site_store(state) as store:
        GroupCalendar(store, time.time).remove_term(name, who=operator())
    click.echo(f"Removed the term {name}.")


@click.group(cls=AddByDefault, subcommand_metavar="[add] GROUP|ls|rm …")
def reserve() -> None:
    """Reserve devices for a group: a lab class every week, or a single day.

    During a reservation the requests of the group go first, and other groups cannot use its
    devices. Before it, requests that could not end in time do not start on them.

    \b
    Examples:
      carrel reserve cs101 --devices 8 --when "Tue 10:00-12:00 Europe/Berlin" --until 2027-02-15
      carrel reserve ls
      carrel reserve rm r-1a2b3c
    """


@reserve.command("add", short_help="Reserve devices; the default command.")
@click.argument("group")
@click.option("--devices", type=click.IntRange(1), required=True, help="How many.")
@click.option("--when", required=True, help=f"{WHEN_HELP}.")
@click.option("--until", default="", metavar="DAY", help="Last day of a weekly reservation.")
@click.option("--from", "first", default="", metavar="DAY", help="First day; default: today.")
@click.option("--why", default="", help="Purpose, shown to the group.")
@click.option("--dry-run", is_flag=True, help="Only preview the effect.")
@json_option
@state_option
def add_reservation(
    *,
    group: str,
    devices: int,
    when: str,
    until: str,
    first: str,
    why: str,
    dry_run: bool,
    as_json: bool,
    state: StateFolder,
) -> None:
    """Reserve devices for GROUP.

    \b
    Examples:
      carrel reserve cs101 --devices 8 --when "Tue 10:00-12:00 Europe/Berlin" --until 2027-02-15
      carrel reserve add lab --devices 2 --when "2026-12-01 14:00-18:00 Europe/Berlin"
    """
    body = ReservationIn(group=group, devices=devices, when=when, until=until, first=first, why=why)
    with site_store(state) as store:
        calendar = GroupCalendar(store, time.time)
        for sentence in calendar.preview(body, who=operator()).problems:
            note(sentence)
        if dry_run:
            note("Nothing was reserved.")
            return
        made = calendar.reserve(body, who=operator())
    if as_json:
        display.as_json(made)
        return
    now = time.time()
    until = "" if made.until in made.when else f", until {made.until}"
    click.echo(
        f"Reserved {made.id}: {devices} for {group}, {made.when}{until}; "
        f"next: {display.local_time(made.starts_at or now, now)} ({display.zone(now)})."
    )


@reserve.command("ls", short_help="List current and future reservations.")
@state_option
@json_option
def list_reservations(*, state: StateFolder, as_json: bool) -> None:
    """List current and future reservations in chronological order.

    \b
    Example:
      carrel reserve ls --json
    """
    with site_store(state) as store:
        found = GroupCalendar(store, time.time).reservations()
    empty = "There are no reservations."
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            *(one.id, one.group, str(one.devices), one.when, one.until),
            "now" if one.running else display.local_time(one.starts_at or now, now),
        ]
        for one in found
    ]
    heads = ["ID", "GROUP", "DEVICES", "WHEN", "UNTIL", f"NEXT ({display.zone(now)})"]
    display.table(heads, rows, right="DEVICES")


@reserve.command("rm", short_help="Remove a reservation.")
@click.argument("reservation")
@state_option
def remove_reservation(*, reservation: str, state: StateFolder) -> None:
    """Remove a reservation, by its id.

    \b
    Example:
      carrel reserve rm r-1a2b3c
    """
    with site_store(state) as store:
        GroupCalendar(store, time.time).unreserve(reservation, who=operator())
    click.echo(f"Removed the reservation {reservation}.")


COMMANDS: dict[str, click.Command] = {"term": term, "reserve": reserve}
