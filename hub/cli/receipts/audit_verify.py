"""``carrel audit verify``: compare the database with the log that can be proved."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click

from ..common import display
from ..common.client_command import WaitingCommand, json_option

_SHOWN = 50


@click.command("verify", cls=WaitingCommand)
@click.option(
    "--heads",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Published heads, or the file of a proof; default: log_heads_file of the settings.",
)
@click.option(
    "--state",
    metavar="DIR",
    default="",
    envvar="CARREL_STATE",
    show_envvar=True,
    help="State folder of this Carrel; default: that of `carrel up`.",
)
@json_option
def verify_command(*, heads: Path | None, state: str, as_json: bool) -> None:
    """Verify the log of submissions, grades and ledger entries, also while the site is running.

    Compares every row with its line in the log, the log with its anchors and signed heads, and
    these with the published heads. Names each row that was changed, removed or reordered, or is
    missing from the log. Run it on the machine of the site.

    The exit status is 0 if nothing differs, 1 if something does, above 1 if it cannot be verified.
    --json prints: ok, lines, heads, count, findings (problem, log, position, table, row, expected,
    found), replaced (log, position, table, row, entered_at), unanchored_since.

    Lists released feedback that was replaced by a later release, which is no finding: compare it
    with what the teachers know.

    \b
    Examples:
      carrel audit verify
      carrel audit verify --heads /backup/carrel-heads.jsonl --json
    """
    # The hub packages, which the other commands of `audit` do not need.
    from ...config.state_folder import DEFAULT_STATE, StateFolder  # noqa: PLC0415
    from ...transparency.check import check_log  # noqa: PLC0415
    from ...transparency.remarks import log_remarks  # noqa: PLC0415
    from ..common.operator_options import existing  # noqa: PLC0415

    folder = StateFolder.at(Path(state or DEFAULT_STATE))
    existing(folder)
    with ExitStack() as stack:

        def started(lines: int) -> Callable[[int], None]:
            length = max(1, lines)
            bar = click.progressbar(length=length, label="Verifying lines", file=sys.stderr)
            return stack.enter_context(bar).update

        who = f"cli:{getpass.getuser()}"
        report = check_log(folder, heads_file=heads, who=who, started=started)
    now = time.time()
    remarks = log_remarks(folder, now=now)
    if as_json:
        display.as_json({"ok": not report.count, **asdict(report), **asdict(remarks)})
    else:
        for each in report.findings[:_SHOWN]:
            click.echo(each.problem)
            if each.expected:
                found = f", found {each.found}" if each.found else ""
                click.echo(f"    SHA-256 according to the log {each.expected}{found}")
        if report.count > _SHOWN:
            click.echo(f"… and {report.count - _SHOWN} more; --json lists up to 1,000.")
        said = f"{report.lines:,} lines and {report.heads} published heads"
        click.echo(
            f"{report.count} findings in {said}." if report.count else f"Nothing differs: {said}."
        )
        for line in remarks.replaced[:_SHOWN]:
            click.echo(
                f"Line {line.position} of the log {line.log}, {line.table} {line.row} of "
                f"{display.exact_time(line.entered_at, now)}, was replaced later."
            )
        if len(remarks.replaced) > _SHOWN:
            click.echo(f"… and {len(remarks.replaced) - _SHOWN} more replaced; --json lists them.")
        if remarks.unanchored_since is not None:
            since = display.exact_time(remarks.unanchored_since, now)
            click.echo(f"A line of {since} is not anchored yet. Is the site running?", err=True)
        if not report.heads:
            click.echo(
                "Without published heads, a log that was rewritten with the key is not found.",
                err=True,
            )
    sys.exit(1 if report.count else 0)
