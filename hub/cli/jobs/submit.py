"""``carrel submit``, ``carrel run`` and ``carrel wait``: the result of a job is the exit status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Unpack

import click

from ...client import Client, roles_file
from ...client.job_files.description import JobFileFormat
from ...client.shell_syntax import shell_syntax
from ...schemas import parsers
from ..common import exit_status
from ..common.client_command import WaitingCommand, json_option, site_option
from ..common.notes import note
from ..common.wait import wait_for
from .job_files import format_choice, submit_job_file
from .submit_options import (
    SubmitOptions,
    job_options,
    notebook_fields,
    notebook_options,
    roles_option,
    send,
)


@click.command("submit", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@notebook_options
@roles_option
@click.option(
    "--format",
    "format_",
    type=format_choice,
    help="FILE is a job file of another platform: OpenPAI, or a manifest of FfDL.",
)
@click.option(
    "--dry-run", is_flag=True, help="With --format: show what becomes of the file; submit nothing."
)
@job_options
@json_option
@site_option
def submit_command(
    *,
    path: Path | None,
    parameters: tuple[tuple[str, str], ...],
    raw: tuple[tuple[str, str], ...],
    results: tuple[tuple[str, str], ...],
    output: str,
    kernel: str,
    roles: Path | None,
    format_: str | None,
    dry_run: bool,
    as_json: bool,
    site: str | None,
    **common: Unpack[SubmitOptions],
) -> None:
    """Run a notebook or a Python script as a job, or with --roles commands that run together.

    A script with cells (# %%) becomes a notebook with these cells, and any other script one with
    a single cell, without arguments and __file__; `carrel run` runs a script as a command. A
    marimo notebook is executed by marimo. The file is uploaded now; the job continues when this
    terminal or the browser closes, or the service restarts. Its output notebook is saved after
    each cell. In a session the job works in the folder of the notebook; elsewhere in your home on
    the site, or in the files of --upload and --input.

    \b
    Examples:
      carrel submit train.ipynb --devices 1 --time 30m --group cs101
      carrel submit train.ipynb -p lr 0.05 -p name '"7"' -r version 1.10 --follow
      carrel submit train.py -p lr 0.05 --devices 1
      carrel submit train.ipynb --input data.csv --memory 8GiB --label sweep=7
      carrel submit test.ipynb --after j-7k2m4qpz --result lr j-7k2m4qpz.best.lr
      carrel submit train.ipynb --time 2h --wait || echo "it did not succeed"
      job=$(carrel submit train.ipynb --json | jq -r .id)
      carrel submit --roles roles.toml --time 4h
      carrel submit --format openpai job.yaml --dry-run
    """
    if roles is not None:
        if path is not None or format_ is not None or dry_run:
            raise click.UsageError("Give either FILE or --roles FILE.")
        send(roles_file.read(roles), Path(), common, needs_files=True, as_json=as_json, site=site)
        return
    if path is None:
        raise click.UsageError("Missing argument 'FILE'.")
    if format_ is not None:
        if parameters or raw or results or output or kernel:
            raise click.UsageError("Options of notebooks have no meaning with --format.")
        format = JobFileFormat(format_)
        submit_job_file(path, format, common, dry_run=dry_run, as_json=as_json, site=site)
        return
    if dry_run:
        raise click.UsageError("--dry-run shows a job file: it needs --format.")
    if path.suffix.lower() in {".yaml", ".yml"}:
        raise click.UsageError(
            f"{path} is not a notebook. For a job file of another platform, add --format openpai "
            "or --format ffdl."
        )
    what = notebook_fields(path, parameters, raw, results=results, output=output, kernel=kernel)
    send(what, path.parent, common, needs_files=False, as_json=as_json, site=site)


@click.command(
    "run",
    cls=WaitingCommand,
    epilog=exit_status.STATUS_HELP,
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", metavar="[--] PROGRAM [ARGUMENT]...", nargs=-1)
@click.option(
    "--shell", is_flag=True, help="Run it in a shell (sh -c), for pipes, redirections and &&."
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run the command N times together, each with --devices devices, and the variables by "
    "which the members find each other: RANK, MASTER_ADDR and others, also for torchrun.",
)
@roles_option
@job_options
@json_option
@site_option
def run_command(
    *,
    command: tuple[str, ...],
    shell: bool,
    nodes: int | None,
    roles: Path | None,
    as_json: bool,
    site: str | None,
    **common: Unpack[SubmitOptions],
) -> None:
    """Run a command as a job: a program with its arguments, without a shell unless --shell.

    In a session the job works in this folder, as it is when the job starts. Elsewhere --upload
    uploads this folder as it is now (without the patterns in .carrelignore), and --input single
    files. `carrel output JOB --files` fetches what the job writes to $CARREL_OUTPUT_DIR.

    \b
    Examples:
      carrel run --devices 1 -- python train.py --lr 0.1
      carrel run --upload --yes --time 2h -- python train.py
      carrel run --input job.sh --retries 2 --follow -- bash job.sh
      carrel run --shell 'python prepare.py && python train.py | tee log.txt'
      carrel run --nodes 2 --devices 4 -- torchrun train.py
      carrel run --roles roles.toml
    """
    if roles is not None:
        if command or nodes is not None or shell:
            raise click.UsageError(
                "The roles in the file have their commands and members: give only --roles."
            )
        send(roles_file.read(roles), Path(), common, needs_files=True, as_json=as_json, site=site)
        return
    if not command:
        raise click.UsageError("Missing argument 'PROGRAM'.")
    if shell:
        command = ("sh", "-c", " ".join(command))
    elif found := shell_syntax(command):
        note(
            f"No shell runs this command: {found!r} is passed on as text. "
            "Use --shell for pipes, redirections and &&."
        )
    send(
        {"command": list(command)},
        Path(),
        common,
        needs_files=True,
        nodes=nodes,
        as_json=as_json,
        site=site,
    )


@click.command("wait", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("request_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--timeout", metavar="SPAN", help=f"Wait no longer than this: {parsers.TIME_HELP}.")
@click.option("--follow", "-f", is_flag=True, help="Show cells, outputs and progress.")
@json_option
@site_option
def wait_command(
    request_ids: tuple[str, ...],
    timeout: str | None,
    follow: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Wait until all requests have ended. The exit status is that of the worst result.

    \b
    Examples:
      carrel wait j-7k2m4qpz && carrel output j-7k2m4qpz
      carrel wait --timeout 2h j-7k2m4qpz j-5xw3n2aa
      carrel wait --follow j-7k2m4qpz
    """
    limit = None if timeout is None else float(parsers.seconds(timeout))
    with Client.from_environment(site) as client:
        sys.exit(wait_for(client, request_ids, limit, as_json, follow=follow))


COMMANDS: dict[str, click.Command] = {
    "submit": submit_command,
    "run": run_command,
    "wait": wait_command,
}
