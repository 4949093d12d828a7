"""``carrel cache``: what one's jobs have compiled, for their next jobs."""

from __future__ import annotations

import time

import click

from ..client import Client
from ..messages import units
from ..schemas.usage import CompileCacheOut
from .common import display
from .common.client_command import ClientCommand, json_option, site_option


@click.command("cache", cls=ClientCommand)
@click.argument("job", required=False)
@click.option("--clear", is_flag=True, help="Delete it: all, or what one job has compiled.")
@click.option("--owner", metavar="NAME", default="", help="That of a user, for administrators.")
@json_option
@site_option
def cache_command(
    *, job: str | None, clear: bool, owner: str, as_json: bool, site: str | None
) -> None:
    """Show or delete what your jobs have compiled with PyTorch.

    Your next jobs of the same program, group and image load it, so that their first step comes
    sooner. If it is deleted, they compile again. Running jobs have a copy of their own and go on;
    what they compile is kept when they end.

    \b
    Examples:
      carrel cache
      carrel cache --clear
      carrel cache j-7k2m4qpz --clear
    """
    if job is not None and not job.strip():
        raise click.UsageError("The job is empty. Name one, or leave it out.")
    if job and not clear:
        raise click.UsageError("A job belongs to --clear: carrel cache JOB --clear.")
    with Client.from_environment(site) as client:
        if clear:
            found = client.clear_compile_cache(job or "", owner=owner)
        else:
            found = client.compile_cache(owner=owner)
    if as_json:
        display.as_json(found)
        return
    if clear:
        click.echo(f"Deleted what {job or 'earlier jobs'} compiled.")
    _show(found)


def _show(found: CompileCacheOut) -> None:
    if found.entries:
        now = time.time()
        rows = [
            [
                each.program,
                each.group,
                units.short_reference(each.image),
                each.request,
                str(each.graphs),
                units.size(each.size),
                display.local_time(each.used_at, now),
            ]
            for each in found.entries
        ]
        heads = ["PROGRAM", "GROUP", "IMAGE", "JOB", "GRAPHS", "SIZE", "LAST USED"]
        display.table(heads, rows, right="GRAPHS,SIZE")
    if found.limit:
        click.echo(f"{units.size(found.size)} of at most {units.size(found.limit)} are kept.")
    else:
        click.echo("This site keeps no compiled code.")


COMMANDS: dict[str, click.Command] = {"cache": cache_command}
