"""``carrel output``: fetch the notebook and files of a job."""

from __future__ import annotations

from pathlib import Path

import click

from ...client import Client
from ...client.work_archive import safe_target
from ...errors import InvalidInput
from ...files.filenames import shortened
from ...messages import units
from ..common import display
from ..common.client_command import ClientCommand, json_option, request_argument, site_option
from ..common.notes import note
from ..common.target_file import taken_name, write_file


@click.command("output", cls=ClientCommand)
@request_argument
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="PATH",
    help="Target: a file or folder, or - for standard output. Default: its own name in this "
    "folder, or with --files a folder named after the job.",
)
@click.option(
    "--files", "of_files", is_flag=True, help="Files that the job wrote to $CARREL_OUTPUT_DIR."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@json_option
@site_option
def output_command(
    *,
    request_id: str,
    target: Path | None,
    of_files: bool,
    force: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Fetch the executed notebook of a job, or its files; of a running job, the output so far.

    \b
    Examples:
      carrel output j-7k2m4qpz
      carrel output j-7k2m4qpz -o results/first.ipynb
      carrel output j-7k2m4qpz --files -o results
      carrel output j-7k2m4qpz -o - | jupyter nbconvert --stdin --to html --stdout
    """
    with Client.from_environment(site) as client:
        if of_files:
            _fetch_files(client, request_id, target, force=force, as_json=as_json)
        else:
            _fetch_notebook(client, request_id, target, force=force, as_json=as_json)


def _fetch_notebook(
    client: Client, request_id: str, target: Path | None, *, force: bool, as_json: bool
) -> None:
    request = client.request(request_id)
    if request.command:
        raise InvalidInput(
            f"{request_id} is a command and has no notebook.",
            accepted=f"See: carrel logs {request_id}, carrel output {request_id} --files",
        )
    found = client.output(request_id)
    if target == Path("-"):
        click.echo(found.content, nl=False)
        return
    # The name is not trusted: use only its last part, in this folder.
    last = Path(found.name.replace("\\", "/")).name
    own = Path(shortened(last) or f"{request_id}.ipynb")
    path = own if target is None else target / own if target.is_dir() else target
    write_file(path, [found.content], force=force)
    if as_json:
        display.as_json({"file": str(path), "bytes": len(found.content), "ended": request.ended})
        return
    click.echo(
        f"Wrote {display.printable(str(path))}"
        + ("." if request.ended else f"; {request.id} has not ended.")
    )


def _fetch_files(
    client: Client, request_id: str, target: Path | None, *, force: bool, as_json: bool
) -> None:
    if target == Path("-"):
        raise InvalidInput(
            "Files cannot be written to standard output.", accepted="Give a folder with -o DIR."
        )
    request = client.request(request_id)
    folder = target or Path(f"{request.id}-files")
    found = client.files(request_id)
    files = found.files
    # Check every name before the first file is written.
    places = {file.name: safe_target(folder, file.name) for file in files}
    taken = [path for path in places.values() if path.exists() and not force]
    if taken:
        raise taken_name(taken[0])
    for file in files:
        path = places[file.name]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{path.parent} cannot be created: {error.strerror}.") from error
        write_file(path, client.file(request_id, file.name), force=force)
        if as_json:
            size = path.stat().st_size
            display.as_json({"file": str(path), "bytes": size, "ended": request.ended})
        else:
            click.echo(f"Wrote {display.printable(str(path))} ({units.size(file.size)}).")
    if found.left_out and not as_json:
        entries = "1 entry is" if found.left_out == 1 else f"{found.left_out} entries are"
        note(f"{entries} left out: links, special files, or too many.")
    if not files and not as_json:
        click.echo(f"{request.id} has written no files to $CARREL_OUTPUT_DIR.")


COMMANDS: dict[str, click.Command] = {"output": output_command}
