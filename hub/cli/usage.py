"""``carrel usage`` and ``carrel history``: device-seconds down to the ledger, and past waits."""

from __future__ import annotations

import time
from typing import get_args

import click

from ..client import Client
from ..messages import units
from ..messages import usage as usage_messages
from ..scheduling.model.text import hours
from ..schemas import BudgetOut, UsageReport, UsedBy, parsers
from ..schemas.pool_history import HistoryOut
from .common import display
from .common.client_command import ClientCommand, json_option, site_option

_DAY = 86400


@click.command("usage", cls=ClientCommand)
@click.option("--group", metavar="NAME", default="", help="Only in this group and those below it.")
@click.option("--since", metavar="DAY", help="From this day on, such as 2026-10-01 (UTC).")
@click.option("--until", metavar="DAY", help="To the end of this day.")
@click.option(
    "--by",
    type=click.Choice(get_args(UsedBy)),
    default="owner",
    show_default=True,
    help="What it is added up for.",
)
@click.option(
    "--everybody",
    is_flag=True,
    help="Of all people whom you may see; with --group that is so anyway.",
)
@click.option("--mine", is_flag=True, help="Only yours, also with --group.")
@click.option("--ledger", is_flag=True, help="Also the newest lines of the ledger behind the sums.")
@json_option
@site_option
def usage_command(
    *,
    group: str,
    since: str | None,
    until: str | None,
    by: str,
    everybody: bool,
    mine: bool,
    ledger: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Show device-seconds: yours, or with --group those of a group as far as you may see them.

    Teachers see what was used in their groups, administrators everything. CHARGED stands in the
    ledger; OPEN has been used since its last line. Days begin at midnight UTC: what runs past it
    counts on both days, each with its part. Weeks begin on Monday, and terms are those of the
    site's calendar. By owner, each person has a line for each of their groups,
    by user one for all of them. A group counts what the groups below it used as well, as far as
    you may see it; OWN USE excludes those. By model, each device of a lease counts for the same
    part of what the lease is charged.

    \b
    Examples:
      carrel usage
      carrel usage --by day --since 2026-10-01
      carrel usage --group cs101 --since 2026-10-01 --until 2026-10-31
      carrel usage --by request --ledger
      carrel usage --by model --everybody
      carrel usage --by group --everybody
      carrel usage --by term --group cs101
    """
    if everybody and mine:
        raise click.UsageError("Either --everybody or --mine.")
    with Client.from_environment(site) as client:
        found = client.usage(
            group=group,
            since=None if since is None else parsers.day(since),
            until=None if until is None else parsers.day(until) + _DAY,
            by=by,
            mine=True if mine else False if everybody else None,
        )
    if as_json:
        display.as_json(found)
        return
    _usage_table(found, by)
    if ledger and found.ledger:
        click.echo()
        display.ledger_table(found.ledger, time.time())
        if not found.ledger_complete:
            click.echo("These are the newest lines; a shorter time shows the older ones.")


def _usage_table(report: UsageReport, by: str) -> None:
    now = time.time()
    if head := usage_messages.HEADS.get(by):
        header = [head.upper(), "CHARGED", "OPEN"]
        rows = [
            ["  " * line.depth + line.name, _number(line.row.charged), _number(line.row.open)]
            for line in usage_messages.lines(by, report.rows)
        ]
        if by == "group":
            header.append(usage_messages.OWN.upper())
            rows = [
                [*row, _number(of.own or 0.0)] for row, of in zip(rows, report.rows, strict=True)
            ]
    elif by == "request":
        header = ["REQUEST", "OWNER", "GROUP", "FROM", "TO", "CHARGED", "OPEN"]
        rows = [
            [
                *(row.request_id, row.owner, row.group),
                display.exact_time(row.first_at, now),
                display.exact_time(row.last_at, now),
                *(_number(row.charged), _number(row.open)),
            ]
            for row in report.rows
        ]
    else:
        header = ["GROUP", "OWNER", "CHARGED", "OPEN"]
        rows = [
            [each.group, each.owner, _number(each.charged), _number(each.open)]
            for each in report.by_group
        ]
    if rows:
        display.table(header, rows, right="CHARGED,OPEN,OWN USE")
    if report.rows_left_out:
        click.echo(f"{report.rows_left_out} older ones are not listed, and count in the sum.")
    for budget in report.budgets:
        _budget_line(budget)
    click.echo(f"Together {units.device_seconds(report.device_seconds)}.")


def _budget_line(budget: BudgetOut) -> None:
    """Used, running and left, and the warning under it."""
    click.echo(
        f"Budget of {budget.group} for this {budget.period}: "
        f"{units.device_hours(budget.device_seconds)}, {hours(budget.used)} used, "
        f"{hours(budget.left)} left; what runs would use {hours(budget.running)}."
    )
    if budget.warning:
        click.echo(budget.warning)


def _number(amount: float) -> str:
    return f"{amount:,.0f}"


@click.command("history", cls=ClientCommand)
@click.option(
    "--span",
    type=click.Choice(["day", "week", "term"]),
    default="week",
    show_default=True,
    help="The last day by the hour, week by six hours, or 18 weeks by the week.",
)
@click.option("--group", metavar="NAME", default="", help="Only of this group.")
@json_option
@site_option
def history_command(span: str, group: str, as_json: bool, site: str | None) -> None:
    """Show how full the pool was, and how long requests waited for devices.

    For administrators; of a group also for its teachers. MEDIAN and 90% are what half, and nine
    of ten, of those waited at most that were first granted devices in that time.

    \b
    Examples:
      carrel history
      carrel history --span term --group cs101
    """
    with Client.from_environment(site) as client:
        found = client.history(span, group)
    if as_json:
        display.as_json(found)
    else:
        _history_table(found)


def _history_table(found: HistoryOut) -> None:
    now = time.time()
    rows = list[list[str]]()
    for period in found.periods:
        share = "" if period.share is None else f"{period.share:.0%}"
        level = [display.local_time(period.starts_at, now), f"{period.leased:.1f}", share]
        level.append(f"{period.queued:.1f}")
        for waits in period.waits:
            median, most = (
                units.duration(each) for each in (waits.median_seconds, waits.ninetieth_seconds)
            )
            rows.append([*level, waits.kind, str(waits.count), median, most])
            level = [""] * len(level)
        if not period.waits:
            rows.append([*level, "", "", "", ""])
    header = ["FROM", "LEASED", "SHARE", "WAITING", "KIND", "GRANTED", "MEDIAN", "90%"]
    display.table(header, rows, right="LEASED,SHARE,WAITING,GRANTED,MEDIAN,90%")
