"""``carrel resume``: go on with an ended job."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ...client import Client
from ...messages import units
from ...schemas import parsers
from ...schemas.resume import ResumeIn, ResumeOut
from ..common import display, exit_status
from ..common.client_command import WaitingCommand, json_option, site_option
from ..common.notes import note
from ..common.wait import wait_for


@click.command("resume", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("request_id", metavar="ID")
@click.option(
    "--from-cell",
    type=click.IntRange(min=1),
    metavar="N",
    help="First code cell to execute; without it, the one after the last cell whose variables "
    "were saved.",
)
@click.option(
    "--notebook",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An edited notebook instead of the submitted one.",
)
@click.option("--time", metavar="SPAN", help=f"Another time limit: {parsers.TIME_HELP}.")
@click.option("--memory", metavar="SIZE", help="Another memory limit, such as 8GiB.")
@click.option("--devices", type=int, metavar="N", help="Another number of devices.")
@click.option("--dry-run", is_flag=True, help="Only show from which cell it would go on.")
@click.option("--wait", "waits", is_flag=True, help="Wait until it has ended.")
@json_option
@site_option
def resume_command(
    *,
    request_id: str,
    from_cell: int | None,
    notebook: Path | None,
    time: str | None,
    memory: str | None,
    devices: int | None,
    dry_run: bool,
    waits: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Go on with a job that has failed or was stopped.

    A new job starts with the variables that were saved after a cell, and executes the cells after
    it; cells before keep their outputs. With --notebook, changed cells before it are shown, and
    all cells are executed, unless --from-cell says where to start. A command starts again and
    finds its checkpoint by carrel.resume_path().

    \b
    Examples:
      carrel resume j-7k2m4qpz
      carrel resume j-7k2m4qpz --notebook train.ipynb --from-cell 4
      carrel resume j-7k2m4qpz --memory 16GiB --wait
    """
    how = ResumeIn(
        from_cell=from_cell,
        notebook=None if notebook is None else parsers.notebook(notebook).content,
        seconds=None if time is None else parsers.seconds(time),
        memory_bytes=None if memory is None else parsers.memory_bytes(memory),
        devices=devices,
        dry_run=dry_run,
    )
    with Client.from_environment(site) as client:
        found = client.resume(request_id, how)
        for line in _described(found, explicit=from_cell is not None):
            note(line)
        if as_json:
            display.as_json(found)
        elif found.request is not None:
            click.echo(found.request.id)
        if waits and found.request is not None:
            sys.exit(wait_for(client, (found.request.id,), None, as_json, follow=False))


def _described(found: ResumeOut, *, explicit: bool) -> list[str]:
    lines = []
    for cell in found.changed:
        lines.append(f"Cell {cell.number} was changed:")
        lines += [f"  {line}" for line in cell.diff.split("\n")[2:]]
    if found.changed and explicit:
        lines.append("The changed cells are not executed again.")
    lines += [f"{name} could not be saved: {why}" for name, why in found.left_out.items()]
    if not found.cells:
        return ["The command starts again; carrel.resume_path() finds its checkpoint."]
    whole = units.count(found.cells, "code cell")
    lines.append(
        f"It starts from cell {found.start} of {whole}."
        if found.start > 1
        else f"It starts from the first of {whole}."
    )
    return lines


COMMANDS: dict[str, click.Command] = {"resume": resume_command}
