"""``carrel pipeline``: submit jobs that wait for each other."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ...client import Client, job_builder, pipeline_file, session_home
from ...client.pipeline import submit_pipeline
from ...client.pipeline_preview import PipelinePreview, preview_pipeline
from ...errors import NotSignedIn, Unavailable
from ...messages import units
from ...records.dependencies import PIPELINE
from ...schemas import RequestOut
from ..common import display, exit_status
from ..common.client_command import WaitingCommand, json_option, site_option
from ..common.notes import note
from ..common.wait import wait_for


@click.command("pipeline", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--group", help="Group to charge; optional for members of one group.")
@click.option("--dry-run", is_flag=True, help="Show order, likely end and cost.")
@click.option("--wait", "waits", is_flag=True, help="Wait until all jobs have ended.")
@json_option
@site_option
def pipeline_command(
    *, path: Path, group: str | None, dry_run: bool, waits: bool, as_json: bool, site: str | None
) -> None:
    """Submit the jobs of a TOML file, of which some wait for others.

    Each table [jobs.NAME] has a notebook or a command, and the options of `carrel submit` and
    `carrel run`: after, devices, model, time, memory, retries, priority, preemptible, image,
    internet, parameters, results, kernel, output, labels, inputs, upload and workdir; or a sweep,
    whose devices are those of one trial. Paths are relative to the file. All jobs are submitted, or
    none.

    \b
    Example of a file:
      [jobs.prepare]
      notebook = "prepare.ipynb"

      [jobs.train]
      notebook = "train.ipynb"
      sweep = { grid = { lr = [0.1, 0.01] }, parallel = 2, objective = "loss" }
      devices = 1
      time = "2h"
      after = ["prepare"]

      [jobs.test]
      notebook = "test.ipynb"
      results = { lr = "train.best.lr", rows = "prepare.report.rows" }
      after = ["prepare", "train"]

      [jobs.report]
      command = "python report.py"
      inputs = ["report.py"]
      after = ["train", "test:any"]

    A job starts when those after which it comes have succeeded; NAME:any means that one may have
    ended in any way. A parameter in results gets a value of a job in after: NAME.report.VALUE,
    NAME.best.PARAMETER, NAME.trial or NAME.id. If one fails, `carrel resume` it, and the rest goes
    on.

    \b
    Examples:
      carrel pipeline study.toml --dry-run
      carrel pipeline study.toml --wait
    """
    jobs = pipeline_file.read(path)
    if dry_run:
        _preview(jobs, group=group, as_json=as_json, site=site)
        return
    with Client.from_environment(site) as client:
        charged = group or job_builder.only_group(client, "--group")
        made = submit_pipeline(client, jobs, group=charged, home=session_home(site))
        if not (waits and as_json):
            _submitted(made, as_json=as_json)
            if not as_json:
                _say_end(client, made)
        if waits:
            ids = [request.id for request in made.values()]
            sys.exit(wait_for(client, ids, None, as_json, follow=False))


def _preview(
    jobs: Sequence[pipeline_file.PipelineJob], *, group: str | None, as_json: bool, site: str | None
) -> None:
    """Show the order of the jobs, and what the service expects of them if it can be reached."""
    if not as_json:
        for job in jobs:
            waits_for = ", ".join(
                name if condition == "ok" else f"{name}:{condition}"
                for name, condition in job.after
            )
            click.echo(f"{job.name}  after {waits_for}" if waits_for else job.name)
    try:
        with Client.from_environment(site) as client:
            charged = group or job_builder.only_group(client, "--group")
            found = preview_pipeline(
                client, jobs, group=charged, home=session_home(site), now=time.time()
            )
    except (Unavailable, NotSignedIn) as error:
        if as_json:
            raise
        note(f"What to expect of them is not known: {error}")
        return
    if as_json:
        click.echo(json.dumps(_as_json(found)))
        return
    for line in _expectation(found):
        click.echo(line)


def _as_json(found: PipelinePreview) -> dict[str, object]:
    return {
        **asdict(found),
        "charge": asdict(found.charge),
        "most": found.most,
        "unknown": found.unknown,
    }


def _expectation(found: PipelinePreview) -> Iterator[str]:
    if found.ends_in is None:
        yield "End: not known, since the start of a job is not known."
    else:
        low, typical, high = (
            units.about(each)
            for each in (found.ends_in.low, found.ends_in.typical, found.ends_in.high)
        )
        limits = f"; {units.count(found.unknown, 'job')} by time limit" if found.unknown else ""
        yield (
            f"End: in about {typical} ({low} to {high}{limits}), if its jobs do not wait for each "
            "other's devices."
        )
        yield f"Critical path: {' → '.join(found.critical)}"
    charge = found.charge
    if not found.most:
        yield "Likely charge: nothing, since no job holds a device."
        return
    likely = units.device_hours_likely(charge.typical, charge.low, charge.high)
    yield f"Likely charge: {likely}, at most {units.device_hours(found.most)}."


def _submitted(made: Mapping[str, RequestOut], *, as_json: bool) -> None:
    if as_json:
        for request in made.values():
            display.as_json(request)
        return
    width = max(map(len, made))
    for name, request in made.items():
        after = f"  after {', '.join(request.after)}" if request.after else ""
        click.echo(f"{name:{width}}  {request.id}{after}")
    label = next(iter(made.values())).labels[PIPELINE]
    note(f"All of them: carrel ps --label {PIPELINE}={label}")


def _say_end(client: Client, made: Mapping[str, RequestOut]) -> None:
    found = client.pipeline(next(iter(made.values())).id).expected_end
    if found is not None:
        note(f"Expected end of all of them: {display.pipeline_end(found, time.time())}")


COMMANDS: dict[str, click.Command] = {"pipeline": pipeline_command}
