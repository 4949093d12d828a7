"""``carrel advise``: measure a notebook for a short time, and advise on its batch and settings."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from ...client import Client, job_builder, session_home
from ...client.job_watch import follow_all
from ...client.probe_job import ADVICE_FILE, LONGEST_PROBE, probe_job
from ...client.probe_result import ProbeResult
from ...schemas import JobIn, RequestOut, parsers
from ..common import exit_status
from ..common.client_command import DeviceCount, WaitingCommand, json_option, site_option
from ..common.notes import note
from ..common.request_options import (
    group_option,
    model_field,
    model_option,
    parameter_option,
)
from ..common.wait import wait_for
from .submit_options import notebook_fields


@click.command("advise", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@parameter_option("A parameter of the notebook, as with `carrel submit`.")
@click.option(
    "--batch-parameter",
    default="",
    metavar="NAME",
    help="The parameter that is the batch; by default batch_size, batch, and the like.",
)
@click.option(
    "--largest-batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="No larger batch is tried, such as the number of samples of your data.",
)
@click.option(
    "--devices",
    type=DeviceCount(min=0),
    default=0,
    show_default=True,
    help="Whole devices (GPUs) of the probe; 0 for CPU.",
)
@model_option
@click.option(
    "--budget",
    metavar="SPAN",
    help=f"How long the probe may take: {parsers.TIME_HELP}. By default {LONGEST_PROBE} s, and at "
    "most 5 % of the predicted run.",
)
@click.option(
    "--within",
    metavar="SPAN",
    help=f"In which time the run should end: {parsers.TIME_HELP}; the cheapest setting is named.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    help=f"Memory limit of the job: {parsers.MEMORY_HELP}.",
)
@click.option("--image", default="", metavar="IMAGE", help="Image to run in.")
@group_option
@json_option
@site_option
def advise_command(  # one argument for each option
    *,
    path: Path,
    parameters: tuple[tuple[str, str], ...],
    batch_parameter: str,
    largest_batch: int | None,
    devices: int,
    model: str | None,
    budget: str | None,
    within: str | None,
    memory: str | None,
    image: str,
    group: str,
    as_json: bool,
    site: str | None,
) -> None:
    """Find the fastest batch and settings of a notebook, and the largest batch that fits.

    A job runs the notebook for a short time with several values of its parameters for the batch,
    threads, precision, devices, loader workers and compilation, as far as it has them, and is
    charged as any other job. The notebook calls carrel.progress(i, n) in its training loop, unless
    it ends quickly. It runs in a copy of the working folder (at most 256 MiB and 5,000 files) that
    is deleted; files elsewhere, also behind links, are not protected. The advice is printed, and is
    the output of the job.

    \b
    Examples:
      carrel advise train.ipynb --devices 1
      carrel advise train.ipynb -p lr 0.1 --batch-parameter n --budget 5m
      carrel advise train.ipynb --within 2h --json
    """
    fields = notebook_fields(path, parameters, (), results=(), output="", kernel="")
    place = job_builder.working_folder(
        path.parent, home=session_home(site), upload=False, inputs=(), workdir=None, needed=False
    )
    fields |= (
        {"devices": devices, "image": image, "seconds": LONGEST_PROBE}
        | model_field(model)
        | place.fields
    )
    if memory:
        fields["memory_bytes"] = parsers.memory_bytes(memory)
    with Client.from_environment(site) as client:
        chosen = group or job_builder.only_group(client, "--group")
        job = job_builder.job(fields | {"group": chosen}, maker="cli")
        made = probe_job(
            job,
            batch_parameter=batch_parameter,
            budget=None if budget is None else parsers.seconds(budget),
            run_seconds=_predicted(client, job),
            deadline_seconds=0 if within is None else parsers.seconds(within),
            largest_batch=largest_batch,
        )
        request = client.submit(made)
        if as_json:
            status = _ended(client, request)
        else:
            click.echo(f"Submitted {request.id}: it measures for at most {made.seconds} s.")
            status = wait_for(client, [request.id], None, as_json=False)
        if status == exit_status.SUCCEEDED:
            content = b"".join(client.file(request.id, ADVICE_FILE))
            if as_json:
                click.echo(json.dumps(json.loads(content), indent=2))
            else:
                _print(ProbeResult.from_json(content), path, parameters, devices)
    sys.exit(status)


def _print(
    found: ProbeResult, path: Path, given: tuple[tuple[str, str], ...], devices: int
) -> None:
    """Print the sentences, and the command that submits the notebook as advised."""
    click.echo("\n".join(found.sentences))
    advised = {**dict(given), **{name: _text(value) for name, value in found.parameters.items()}}
    words = ["carrel", "submit", str(path)]
    for name, value in advised.items():
        words += ["-p", name, value]
    words += ["--devices", str(devices)] if devices else []
    if found.parameters:
        click.echo(f"Submit it with: {shlex.join(words)}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _predicted(client: Client, job: JobIn) -> float | None:
    """Return the predicted run time in seconds; None if it is unknown.

    Raises:
        CarrelError: the service would refuse the job, such as for a parameter that it lacks.
    """
    run_time = client.dry_run(job).run_time
    return None if run_time is None or run_time.basis is None else run_time.seconds


def _ended(client: Client, request: RequestOut) -> int:
    for change in follow_all(client, [request.id]):
        if isinstance(change.item, RequestOut):
            request = change.item
    if request.state != "succeeded" and request.cause is not None:
        note(request.cause.message)
    return exit_status.exit_status([request])


COMMANDS: dict[str, click.Command] = {"advise": advise_command}
