"""``carrel predict``: the likely run time of a job, from the jobs that have ended."""

from __future__ import annotations

from pathlib import Path

import click

from ...client import Client, job_builder
from ...messages import units
from ...schemas import parsers
from ..common import display
from ..common.client_command import ClientCommand, DeviceCount, json_option, site_option
from ..common.request_options import (
    group_option,
    model_field,
    model_option,
    parameter_option,
)
from .submit_options import notebook_fields


@click.command("predict", cls=ClientCommand)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@parameter_option("A parameter of the notebook, as with `carrel submit`.")
@click.option(
    "--devices",
    type=DeviceCount(min=0),
    help="Whole devices (GPUs), 0 for CPU. Default: 0, or 1 with --model.",
)
@model_option
@click.option(
    "--time",
    "limit",
    default="1h",
    show_default=True,
    metavar="SPAN",
    help=f"Its time limit: {parsers.TIME_HELP}.",
)
@group_option
@json_option
@site_option
def predict_command(
    *,
    path: Path,
    parameters: tuple[tuple[str, str], ...],
    devices: int | None,
    model: str | None,
    limit: str,
    group: str,
    as_json: bool,
    site: str | None,
) -> None:
    """Show how long a notebook would run, what it would cost and when it would start.

    Nothing is submitted. The run time is that of earlier jobs with the same code and parameters, or
    of jobs that are as much alike as there are any. It is advice: nothing is charged or limited by
    it.

    \b
    Examples:
      carrel predict train.ipynb -p lr 0.1 --model a100
      carrel predict train.ipynb --devices 2 --time 20m --json
    """
    what = notebook_fields(path, parameters, (), results=(), output="", kernel="")
    if devices is None:
        devices = 0 if model is None else 1
    fields = what | {"devices": devices, "seconds": parsers.seconds(limit)} | model_field(model)
    with Client.from_environment(site) as client:
        chosen = group or job_builder.only_group(client, "--group")
        found = client.dry_run(job_builder.job(fields | {"group": chosen}, maker="cli"))
    if as_json:
        display.as_json(found)
        return
    run_time = found.run_time
    if run_time is None:
        click.echo("Run time: not known yet. Ask again in a minute.")
    else:
        click.echo(f"Run time: {run_time.sentence}")
        if run_time.suggested_seconds is not None:
            click.echo(f"Suggested time limit: {units.duration(run_time.suggested_seconds)}.")
    cost = "nothing: it holds no device." if found.cost is None else found.cost.sentence
    click.echo(f"Cost: {cost}")
    click.echo(f"Start: {found.sentence}")


COMMANDS: dict[str, click.Command] = {"predict": predict_command}
