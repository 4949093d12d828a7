"""``carrel usage`` and ``carrel history``: device-hours, utilization and wait times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import get_args

import click

from ..client import Client
from ..messages import units
from ..messages import usage as usage_messages
from ..scheduling.model.text import hours
from ..schemas import BudgetOut, UsageReport, UsedBy, parsers
from ..schemas.usage import HistoryOut
from .common import display
from .common.client_command import ClientCommand, json_option, site_option
from .common.proof_file import write_proof

_DAY = 86400


@click.command("usage", cls=ClientCommand)
@click.option("--group", metavar="NAME", default="", help="Only in this group and its subgroups.")
@click.option("--since", metavar="DAY", help="First day, such as 2026-10-01 (UTC).")
@click.option("--until", metavar="DAY", help="Last day, inclusive.")
@click.option(
    "--by",
    type=click.Choice(get_args(UsedBy)),
    default="owner",
    show_default=True,
    help="Grouping of the sums.",
)
@click.option(
    "--everybody",
    is_flag=True,
    help="Include all users that you may see; the default with --group.",
)
@click.option("--mine", is_flag=True, help="Only your usage, also with --group.")
@click.option("--ledger", is_flag=True, help="Include the newest ledger entries.")
@click.option(
    "--proof",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a proof of up to 2,000 of your own ledger entries, for `carrel verify`.",
)
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
    proof: Path | None,
    as_json: bool,
    site: str | None,
) -> None:
    """Show device-hours: yours, or with --group those of a group as far as you may see them.

    Teachers see the usage in their groups, administrators all usage. CHARGED is recorded in the
    ledger; OPEN is the usage since the last ledger entry. Days begin at midnight UTC, weeks on
    Monday, and usage is split between them. Terms are those of the site's calendar. By owner, each
    user has a line for each group, by user one line in all. A group includes its subgroups as far
    as you may see them; OWN USE excludes them. By model, each device of a lease counts for the
    same part of its charge.

    \b
    Examples:
      carrel usage
      carrel usage --by day --since 2026-10-01
      carrel usage --group cs101 --since 2026-10-01 --until 2026-10-31
      carrel usage --by request --ledger
      carrel usage --by model --everybody
      carrel usage --by group --everybody
      carrel usage --by term --group cs101
      carrel usage --since 2026-10-01 --proof usage.json
    """
    if everybody and mine:
        raise click.UsageError("Use either --everybody or --mine.")
    first = None if since is None else parsers.day(since)
    last = None if until is None else parsers.day(until) + _DAY
    with Client.from_environment(site) as client:
        if proof is not None:
            document = client.usage_proof(group=group, since=first, until=last)
            write_proof(proof, document, as_json=as_json)
            return
        found = client.usage(
            group=group,
            since=first,
            until=last,
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
            click.echo("These are the newest entries; a shorter period shows older ones.")


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
    elif by == "owner-model":
        header = ["GROUP", "OWNER", "MODEL", "CHARGED", "OPEN"]
        rows = [
            [
                *(row.group, row.owner, row.model or "unknown"),
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
        click.echo(f"{report.rows_left_out} older ones are not listed, but included in the sum.")
    for budget in report.budgets:
        _budget_line(budget)
    click.echo(f"Together {units.device_hours(report.device_seconds)}.")


def _budget_line(budget: BudgetOut) -> None:
    """Print the used, committed and remaining budget, and its warning."""
    click.echo(
        f"Budget of {budget.group} for this {budget.period}: "
        f"{units.device_hours(budget.device_seconds)}, {hours(budget.used)} used, "
        f"{hours(budget.left)} left; running requests may use {hours(budget.running)}."
    )
    if budget.warning:
        click.echo(budget.warning)


def _number(amount: float) -> str:
    return hours(amount)


@click.command("history", cls=ClientCommand)
@click.option(
    "--span",
    type=click.Choice(["day", "week", "term"]),
    default="week",
    show_default=True,
    help="The last day by hour, week by six hours, or 18 weeks by week.",
)
@click.option("--group", metavar="NAME", default="", help="Only of this group.")
@json_option
@site_option
def history_command(span: str, group: str, as_json: bool, site: str | None) -> None:
    """Show the utilization of the pool, and how long requests waited for devices.

    For administrators; for a group also for its teachers. MEDIAN and 90% are the median and the
    90th percentile of the wait times of requests that were first granted devices in the period.

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


COMMANDS: dict[str, click.Command] = {"usage": usage_command, "history": history_command}
