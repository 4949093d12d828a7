"""``carrel import`` and ``carrel export``, and ``carrel submit --format``: job files of others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ...client import Client, job_builder, work_archive
from ...client.job_files.description import JobFileFormat
from ...client.job_files.job_fields import job_fields, with_images
from ...client.job_files.openpai_export import export
from ...client.work_archive import WorkArchive
from ...errors import Forbidden, InvalidInput, Refused
from ...messages import units
from ...schemas.images import ImagesOut
from ..common import display
from ..common.client_command import (
    ClientCommand,
    json_option,
    request_argument,
    site_option,
)
from ..common.notes import note
from ..common.request_options import model_option
from .imported_file import ImportedFile, found_files, imported, show
from .submit_options import SubmitOptions, built_fields, built_job, send_fields, time_option

format_choice = click.Choice([str(each) for each in JobFileFormat])


@click.command("import", cls=ClientCommand)
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--format", "format_", type=format_choice, help="By default that of each file.")
@click.option("--dry-run", is_flag=True, help="Show what becomes of each file; submit nothing.")
@click.option("--skip-refused", is_flag=True, help="Submit the others if a file is refused.")
@click.option("--nearest-image", is_flag=True, help="Use the nearest image for a missing one.")
@click.option("--image", default="", metavar="IMAGE", help="Image for all roles of all files.")
@click.option("--group", help="Group to charge; optional for members of one group.")
@time_option
@model_option
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@click.option("--upload", is_flag=True, help="Upload the folder of each file with it.")
@click.option(
    "--workdir", metavar="DIR", help="Working folder in your home on the site; . is the home."
)
@json_option
@site_option
def import_command(
    *,
    paths: tuple[Path, ...],
    format_: str | None,
    dry_run: bool,
    skip_refused: bool,
    nearest_image: bool,
    image: str,
    group: str | None,
    limit: str,
    model: str | None,
    labels: tuple[str, ...],
    upload: bool,
    workdir: str | None,
    as_json: bool,
    site: str | None,
) -> None:
    """Run job files of OpenPAI (protocol 2, and version 1 in JSON) and manifests of FfDL.

    PATH is a file or a folder, whose files .yaml, .yml and .json are imported in the order of their
    paths, those in subfolders included. Before the first is submitted, all are checked, and what
    is not kept of each is listed. If one is refused, none is submitted, unless --skip-refused. A
    job of OpenPAI works in an empty folder of its own; one of FfDL needs --upload or --workdir.

    \b
    Exit status:
      0  all were submitted, or could be
      1  a file was refused, or Carrel is not responding
      2  invalid usage

    \b
    Examples:
      carrel import jobs/ --dry-run
      carrel import train.yaml --image torch --time 4h
      carrel import jobs/ --nearest-image --skip-refused --json
    """
    common = SubmitOptions(
        devices=0, model=model, limit=limit, memory=None, retries=None, priority="normal",
        not_preemptible=False, deadline=None, group=group, image=image, no_internet=False,
        no_compile_cache=False, after=(), secrets=(), labels=labels, inputs=(), upload=upload,
        workdir=workdir, yes=True, wait_for_end=False, follow=False,
    )  # fmt: skip  # as in the options of `carrel submit`
    files = found_files(paths)
    catalogue = _catalogue(site, dry_run=dry_run)
    format = None if format_ is None else JobFileFormat(format_)
    read = [
        imported(path, name, format, catalogue, image=image, use_nearest=nearest_image)
        for path, name in files
    ]
    if not as_json:
        for each in read:
            show(each, err=not dry_run)
    refused = [each for each in read if each.refused is not None]
    if dry_run:
        done = read
    elif refused and not skip_refused:
        done = read
        note("Nothing was submitted. Submit the others with --skip-refused.")
    else:
        done = _submitted(read, common, site=site, as_json=as_json)
    if as_json:
        for each in done:
            display.as_json(each.json)
    else:
        _summary(done, dry_run=dry_run)
    if any(each.refused is not None for each in done):
        sys.exit(1)


def submit_job_file(
    path: Path,
    format: JobFileFormat,
    common: SubmitOptions,
    *,
    dry_run: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Submit one job file, or show what would become of it.

    Raises:
        Refused: the file is malformed, or an image is missing.
    """
    if common["devices"]:
        raise click.UsageError("The devices of a job file are those in the file: omit --devices.")
    catalogue = _catalogue(site, dry_run=dry_run)
    read = imported(path, str(path), format, catalogue, image=common["image"], use_nearest=False)
    if read.refused is not None or read.job is None:
        raise read.refused or InvalidInput(f"{path} has no job.")
    if dry_run and as_json:
        display.as_json(read.json)
        return
    if not as_json:
        show(read, err=not dry_run)
    if not dry_run:
        send_fields(_body_fields(read, common, site=site), common, as_json=as_json, site=site)


@click.command("export", cls=ClientCommand)
@request_argument
@click.option(
    "--format",
    type=click.Choice([str(JobFileFormat.OPENPAI)]),
    default=str(JobFileFormat.OPENPAI),
    show_default=True,
    help="The format of the file.",
)
@json_option
@site_option
def export_command(*, request_id: str, format: str, as_json: bool, site: str | None) -> None:
    """Print a job of commands as a job file of another platform: OpenPAI, protocol 2.

    What the file cannot hold is listed on stderr. An exported job that was imported before reads
    back as the same job.

    \b
    Examples:
      carrel export --format openpai j-7k2m4qpz > job.yaml
    """
    with Client.from_environment(site) as client:
        made = export(client.request(request_id))
    if as_json:
        left = [{"field": each.field, "reason": each.reason} for each in made.not_kept]
        display.as_json({"format": format, "text": made.text, "not_kept": left})
        return
    for each in made.not_kept:
        note(f"Not kept: {each.field}: {each.reason}")
    click.echo(made.text, nl=False)


def _catalogue(site: str | None, *, dry_run: bool) -> ImagesOut | None:
    """Return the images of the site; None in a dry run without a site."""
    try:
        with Client.from_environment(site) as client:
            return client.images()
    except Forbidden:
        if not dry_run:
            raise
        note("You are not signed in to a site: images are not checked.")
        return None


def _body_fields(
    read: ImportedFile, common: SubmitOptions, *, site: str | None
) -> dict[str, object]:
    """Return the fields of the body; options of the command line have precedence over the file."""
    job = read.job
    if job is None:
        raise InvalidInput(f"{read.name} has no job.")
    fields = with_images(job_fields(read.name, job), read.images)
    own = SubmitOptions(**{**common, "image": ""})
    made = built_fields({}, read.path.parent, own, needs_files=job.needs_files, site=site)
    given = {
        "retries": common["retries"] is not None,
        "priority": common["priority"] != "normal",
        "memory_bytes": bool(common["memory"]),
    }
    fields = {name: value for name, value in fields.items() if not given.get(name)}
    labels = {**_labels(fields), **_labels(made)}
    if not (job.needs_files or common["upload"] or common["inputs"] or common["workdir"]):
        made.pop("workdir", None)
        made["archive"] = work_archive.encode(work_archive.pack(WorkArchive(items=())))
    return {**made, **fields, "labels": labels}


def _labels(fields: dict[str, object]) -> dict[str, str]:
    """Return the labels among the fields of a body."""
    labels = fields.get("labels")
    return dict(labels) if isinstance(labels, dict) else {}


def _submitted(
    read: Sequence[ImportedFile], common: SubmitOptions, *, site: str | None, as_json: bool
) -> list[ImportedFile]:
    """Submit the files in their order; those that the site refuses are refused alone."""
    done = []
    with Client.from_environment(site) as client:
        chosen = common["group"] or job_builder.only_group(client, "--group")
        charged = SubmitOptions(**{**common, "group": chosen})
        for each in read:
            if each.refused is not None:
                done.append(each)
                continue
            try:
                body = built_job(client, _body_fields(each, charged, site=site), charged)
                made = replace(each, request=client.submit(body))
            except Refused as error:
                made = replace(each, refused=error)
            done.append(made)
            if made.request is not None and not as_json:
                click.echo(f"{display.printable(each.name)}  {made.request.id}")
            elif made.refused is not None:
                note(f"Refused: {display.printable(each.name)}: {made.refused}")
    return done


def _summary(done: Sequence[ImportedFile], *, dry_run: bool) -> None:
    refused = sum(1 for each in done if each.refused is not None)
    fine = sum(1 for each in done if (each.request is not None) or (dry_run and not each.refused))
    what = "could be submitted" if dry_run else "submitted"
    note(f"{units.count(fine, 'job')} {what}, {units.count(refused, 'file')} refused.")


COMMANDS: dict[str, click.Command] = {"import": import_command, "export": export_command}
