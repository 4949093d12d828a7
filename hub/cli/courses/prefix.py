"""``carrel course prefix``."""

from __future__ import annotations

import click

from ...client import Client
from ...messages import units
from ...schemas.courses import PrefixIn, PrefixOut
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.terminal import plain
from .selection import assignment_argument, course_option, grading, teaching


@click.command("prefix", cls=ClientCommand)
@assignment_argument
@click.argument("switch", required=False, type=click.Choice(["on", "off"]))
@course_option
@click.option(
    "--devices",
    type=click.IntRange(0),
    help="Devices of the jobs that begin with it; by default as many as for grading.",
)
@click.option("--clear-cache", is_flag=True, help="Delete what its job has compiled.")
@json_option
@site_option
def prefix_command(
    *,
    assignment: str,
    switch: str | None,
    course: str,
    devices: int | None,
    clear_cache: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Run the given cells of an assignment once for all members (teachers).

    A job of the course runs the leading cells of each released notebook, up to the first one that
    students edit. Jobs that begin with the same cells go on after them, each with a copy of its
    own of the variables. Without on or off, the present state and what it has saved are shown.
    What that job compiles with PyTorch is loaded, too. After --clear-cache, jobs load only what
    earlier jobs of their own user compiled, until the prefix is switched off and on again.

    \b
    Examples:
      carrel course prefix ps1 on
      carrel course prefix ps1
      carrel course prefix ps1 off
      carrel course prefix ps1 --clear-cache
    """
    if devices is not None and switch != "on":
        raise click.UsageError("--devices belongs to on: carrel course prefix ASSIGNMENT on.")
    if clear_cache and switch is not None:
        raise click.UsageError("With --clear-cache, give neither on nor off.")
    with Client.from_environment(site) as client:
        if clear_cache:
            found = client.clear_prefix_cache(teaching(client, course), assignment)
        elif switch is None:
            found = client.prefix(grading(client, course, assignment), assignment)
        else:
            body = PrefixIn(on=switch == "on", devices=devices)
            found = client.set_prefix(teaching(client, course), assignment, body)
    if as_json:
        display.as_json(found)
        return
    if clear_cache:
        click.echo(f"Deleted the compiled code of {found.assignment}.")
    _show(found)


def _show(found: PrefixOut) -> None:
    name = found.assignment
    if found.on:
        click.echo(f"The prefix of {name} is on, for jobs with {units.devices(found.devices)}.")
    else:
        click.echo(f"The prefix of {name} is off.")
    for each in found.notebooks:
        match each.state:
            case "ready":
                text = f"saves {units.duration(each.seconds)} of each job"
                if each.compiled_bytes:
                    text += f", with {units.size(each.compiled_bytes)} of compiled code"
            case "computing":
                text = f"is computed by {each.request}"
            case _:
                text = f"has none. {each.why_not}"
        click.echo(plain(f"{each.notebook}: {text}"))
    if found.jobs:
        saved = units.device_hours(found.device_seconds)
        click.echo(f"Saved: {saved} in {units.count(found.jobs, 'job')}.")
