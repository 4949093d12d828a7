"""``carrel report``: usage, waits, money and kWh of the site in a period."""

from __future__ import annotations

from pathlib import Path

import click

from ..client import Client
from ..messages import site_report as report_messages
from ..messages import units
from ..messages import what_if as what_if_messages
from ..schemas import parsers
from ..schemas.usage import SiteReportOut
from .common import display
from .common.client_command import ClientCommand, ClientGroup, json_option, site_option
from .common.target_file import csv_option, write_csv

_DAY = 86400


@click.group("report", cls=ClientGroup, invoke_without_command=True)
@click.option("--month", metavar="MONTH", help="A month such as 2026-10; default: the last one.")
@click.option("--from", "first", metavar="DAY", help="First day, such as 2026-10-01 (UTC).")
@click.option("--to", "last", metavar="DAY", help="Last day, inclusive; default: until now.")
@csv_option("Write the report as CSV.")
@json_option
@site_option
@click.pass_context
def report_command(
    ctx: click.Context,
    *,
    month: str | None,
    first: str | None,
    last: str | None,
    csv_file: Path | None,
    as_json: bool,
    site: str | None,
) -> None:
    """Report device-hours, waits, money, kWh and idle holding by group, user, course and model.

    For administrators. A group is shown without its subgroups. OF THE POOL is the part of the
    healthy device time of the whole pool. REQUESTS were first granted devices in the period. Money
    and kWh need the price and the watts of each device model in settings.json.

    \b
    Examples:
      carrel report
      carrel report --month 2026-10 --csv october.csv
      carrel report --from 2026-09-01 --to 2027-01-31
      carrel report what-if --devices +4
    """
    if ctx.invoked_subcommand is not None:
        return
    since, until = _period(month, first, last)
    with Client.from_environment(site) as client:
        found = client.site_report(since=since, until=until)
    if csv_file is not None:
        write_csv(csv_file, report_messages.csv_rows(found))
    if as_json:
        display.as_json(found)
    elif csv_file is not None:
        click.echo(
            f"Wrote the report of {report_messages.period(found)} to "
            f"{display.printable(str(csv_file))}."
        )
    else:
        _print_tables(found)


@report_command.command("what-if", cls=ClientCommand)
@click.option(
    "--devices",
    default="",
    metavar="DEVICES",
    help="+4 adds a node of four devices, +2x4 two such nodes, 6x8 replaces all nodes.",
)
@click.option(
    "--quota",
    multiple=True,
    metavar="GROUP=DEVICES",
    help="Another max quota of a group; may be repeated.",
)
@click.option(
    "--days", type=click.IntRange(1), metavar="DAYS", help="Replay the last days; default: 90."
)
@csv_option("Write the result as CSV.")
@json_option
@site_option
def what_if_command(
    *,
    devices: str,
    quota: tuple[str, ...],
    days: int | None,
    csv_file: Path | None,
    as_json: bool,
    site: str | None,
) -> None:
    """Replay the ledger with other devices or quotas, and compare waits and utilization.

    For administrators. Both replays have the same submissions and run times, and Carrel's policy
    with the learned order of the site, if it has one. A wait lasts until the first start. `carrel
    simulate --from-ledger` compares policies too.

    \b
    Examples:
      carrel report what-if --devices +4
      carrel report what-if --quota cs101=8 --quota lab=2 --days 30
    """
    with Client.from_environment(site) as client:
        found = client.what_if(devices=devices, quota=quota, days=days)
    if csv_file is not None:
        write_csv(csv_file, what_if_messages.csv_rows(found))
    if as_json:
        display.as_json(found)
        return
    if csv_file is not None:
        click.echo(f"Wrote the result to {display.printable(str(csv_file))}.")
        return
    click.echo(what_if_messages.summary(found))
    click.echo()
    head = [each.upper() for each in what_if_messages.HEAD]
    display.table(
        head, [list(row) for row in what_if_messages.rows(found)], right=",".join(head[1:])
    )
    click.echo()
    for note in found.notes:
        click.echo(note)


def _period(
    month: str | None, first: str | None, last: str | None
) -> tuple[float | None, float | None]:
    if month is not None:
        if first is not None or last is not None:
            raise click.UsageError("Use either --month, or --from and --to.")
        return parsers.month(month)
    if first is None and last is not None:
        raise click.UsageError("--to needs the first day: add --from.")
    since = None if first is None else parsers.day(first)
    return since, None if last is None else parsers.day(last) + _DAY


def _print_tables(found: SiteReportOut) -> None:
    click.echo(f"{report_messages.period(found)}: {units.device_hours(found.total.device_seconds)}")
    for sentence in report_messages.sentences(found)[1:]:
        click.echo(sentence)
    for table in report_messages.tables(found):
        click.echo()
        head = [each.upper() for each in table.head]
        display.table(head, [list(row) for row in table.rows], right=",".join(head[1:]))
    click.echo()
    for note in found.notes:
        click.echo(note)


COMMANDS: dict[str, click.Command] = {"report": report_command}
