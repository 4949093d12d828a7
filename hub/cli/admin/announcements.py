"""``carrel announce``: banners on all pages."""

from __future__ import annotations

import time

import click

from ...administration.announcements import Announcements
from ...config.state_folder import StateFolder
from ...schemas import parsers
from ...schemas.announcements import AnnouncementIn, AnnouncementLevel, announcement_text
from ..common import display
from ..common.client_command import AddByDefault
from ..common.operator_options import operator, state_option
from ..common.site_store import site_store

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


@click.group(cls=AddByDefault, subcommand_metavar="[add] TEXT|ls|rm …")
def announce() -> None:
    """Announcements: banners on all pages, the sign-in page included.

    \b
    Examples:
      carrel announce "Maintenance on Saturday from 18:00: sessions stop." --until 2d
      carrel announce ls
      carrel announce rm a-1a2b3c
    """


@announce.command("add", short_help="Show an announcement; the default command.")
@click.argument("text")
@click.option("--until", required=True, metavar="TIME", help=f"{parsers.MOMENT_HELP}.")
@click.option("--from", "begin", default="", metavar="TIME", help="The same; default: now.")
@click.option(
    "--level",
    type=click.Choice([level.value for level in AnnouncementLevel]),
    default=AnnouncementLevel.INFO.value,
    show_default=True,
    help="How it looks.",
)
@json_option
@state_option
def add_announcement(
    *,
    text: str,
    until: str,
    begin: str,
    level: str,
    as_json: bool,
    state: StateFolder,
) -> None:
    """Show TEXT on all pages, also on the sign-in page; each user can close it.

    \b
    Examples:
      carrel announce "Maintenance on Saturday." --until "2026-11-28 20:00" --level warning
      carrel announce add "The pool is twice as large." --from 8h --until 3d
    """
    now = time.time()
    body = AnnouncementIn(
        text=announcement_text(text),
        level=AnnouncementLevel(level),
        starts_at=parsers.moment(begin, now) if begin else None,
        ends_at=parsers.moment(until, now),
    )
    with site_store(state) as store:
        made = Announcements(store, time.time).add(body, who=operator())
    if as_json:
        display.as_json(made)
        return
    click.echo(
        f"Announced {made.id}: shown from {display.local_time(made.starts_at, now)} "
        f"until {display.local_time(made.ends_at, now)} ({display.zone(now)})."
    )


@announce.command("ls", short_help="List current, coming and recent announcements.")
@json_option
@state_option
def list_announcements(*, as_json: bool, state: StateFolder) -> None:
    """List the announcements of the last 30 days, and all later ones.

    \b
    Example:
      carrel announce ls --json
    """
    with site_store(state) as store:
        found = Announcements(store, time.time).all()
    empty = "There are no announcements. Add one with: carrel announce TEXT --until TIME"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            *(one.id, one.level),
            display.local_time(one.starts_at, now),
            display.local_time(one.ends_at, now),
            "now" if one.shown else "",
            one.text,
        ]
        for one in found
    ]
    zone = display.zone(now)
    display.table(["ID", "LEVEL", f"FROM ({zone})", f"UNTIL ({zone})", "SHOWN", "TEXT"], rows)


@announce.command("rm", short_help="Remove an announcement.")
@click.argument("announcement")
@state_option
def remove_announcement(*, announcement: str, state: StateFolder) -> None:
    """Remove an announcement, by its id.

    \b
    Example:
      carrel announce rm a-1a2b3c
    """
    with site_store(state) as store:
        Announcements(store, time.time).remove(announcement, who=operator())
    click.echo(f"Removed the announcement {announcement}.")


COMMANDS: dict[str, click.Command] = {"announce": announce}
