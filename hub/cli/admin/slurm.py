"""``carrel slurm``: try a Slurm cluster, mirror quotas to its accounts, show what others use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import click

from ... import plugins
from ...config.settings import EngineKind
from ...config.state_folder import StateFolder
from ...errors import CarrelError
from ...records.diagnostics import Finding, Severity
from ...records.usage import DAY
from ...scheduling.model.text import hours
from ...schemas import parsers
from ..common import display
from ..common.client_command import ListOptions
from ..common.operator_options import state_option
from ..common.site_store import site_store
from .doctor import report, settings_for

_DAYS: Final = 30


@click.group(cls=ListOptions)
def slurm() -> None:
    """A Slurm cluster as the engine: check, sync, usage.

    \b
    Examples:
      carrel slurm check
      carrel slurm sync --dry-run
    """


@slurm.command(short_help="Try the cluster for what Carrel needs.")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def check(*, state: StateFolder, as_json: bool) -> None:
    """Try the cluster for what Carrel needs, without harm, and show what to configure.

    Reads the table [slurm] of STATE/carrel.toml; works before the first start. It submits a held
    job, which it cancels at once, to see whether the comment stays, and on each node a job of a
    second without devices, to see whether the node shares the state folder, Carrel and the clock
    of this machine and reaches the service.

    The exit status is 1 if something is missing, otherwise 0: Carrel works despite warnings.
    --json prints: ok, findings (subject, verdict, what, mend).

    \b
    Examples:
      carrel slurm check
      carrel slurm check --state /srv/carrel --json
    """
    report(_findings(state), as_json=as_json)


def _findings(state: StateFolder) -> Iterator[Finding]:
    try:
        host_setup = plugins.load_host_setup(state, settings_for(state, EngineKind.SLURM))
        yield from () if host_setup is None else host_setup.findings()
    except CarrelError as error:
        yield Finding(
            subject="Slurm", verdict=Severity.MISSING, what=error.message, mend=error.accepted
        )


@slurm.command(short_help="Mirror the quotas of groups to accounts.")
@state_option
@click.option("--dry-run", is_flag=True, help="Only show the calls of sacctmgr.")
def sync(*, state: StateFolder, dry_run: bool) -> None:
    """Mirror the quotas of groups to accounts of Slurm.

    Every group becomes an account carrel_GROUP below that of its parent, with its max quota as
    GrpTRES, its longest time limit as MaxWall and its weight as fair share. With `mirror = true`
    below [slurm] in carrel.toml, jobs are charged to these accounts. Run it again after each change
    of the quotas; accounts of removed groups are left as they are. It needs a cluster with
    slurmdbd, and an account that may change it.

    Prints the calls of sacctmgr that were made, one per line; nothing if all accounts are as they
    should be.

    \b
    Examples:
      carrel slurm sync --dry-run
      carrel slurm sync
    """
    with site_store(state) as store:
        groups = store.groups()
    mirror = plugins.load_quota_mirror(state, settings_for(state, EngineKind.SLURM))
    for line in mirror.sync(groups, dry_run=dry_run):
        click.echo(line)


@slurm.command(short_help="Show what jobs from outside Carrel have used.")
@state_option
@click.option("--since", metavar="DAY", help="First day, such as 2026-10-01 (UTC).")
@click.option("--until", metavar="DAY", help="Last day, inclusive.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def usage(*, state: StateFolder, since: str | None, until: str | None, as_json: bool) -> None:
    """Show the device-hours of jobs that users have submitted to Slurm without Carrel.

    They come from Slurm's accounting (sacct), by user and account of Slurm; of the last 30 days,
    if no first day is given. Carrel's own are in `carrel usage`. It needs a cluster with slurmdbd.

    --json prints one object per line: user, account, jobs, device_seconds.

    \b
    Examples:
      carrel slurm usage
      carrel slurm usage --since 2026-10-01 --until 2026-10-31
    """
    now = time.time()
    first = now - _DAYS * DAY if since is None else parsers.day(since)
    last = now if until is None else parsers.day(until) + DAY
    if last <= first:
        raise click.UsageError("The last day is before the first one.")
    reader = plugins.load_cluster_usage(state, settings_for(state, EngineKind.SLURM))
    found = reader.outside(first, last)
    empty = "No job from outside Carrel has had devices."
    if display.listed(found, empty=empty, as_json=as_json):
        return
    rows = [[use.user, use.account, str(use.jobs), hours(use.device_seconds)] for use in found]
    display.table(["USER", "ACCOUNT", "JOBS", "DEVICE-HOURS"], rows, right="JOBS DEVICE-HOURS")


COMMANDS: dict[str, click.Command] = {"slurm": slurm}
