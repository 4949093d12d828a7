"""``carrel receipt``: fetch the receipt of a job."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ...client import Client
from ...provenance.canonical_json import parse_object
from ...provenance.crate import read_receipt
from ..common import display
from ..common.client_command import ClientCommand, json_option, request_argument, site_option
from ..common.target_file import write_file


@click.command("receipt", cls=ClientCommand)
@request_argument
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Target file, or - for standard output. Default: ID.receipt.json in this folder.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
@site_option
def receipt_command(
    *, request_id: str, target: Path | None, force: bool, as_json: bool, site: str | None
) -> None:
    """Fetch the receipt of an ended job: an RO-Crate 1.1 in JSON-LD, signed by the site.

    It says what ran, on which image, devices and inputs, when, at what cost, and for whom. The
    executed notebook from `carrel output` contains it too. With --json, only its content is
    printed, and nothing is written.

    \b
    Examples:
      carrel receipt j-7k2m4qpz
      carrel receipt j-7k2m4qpz -o results/receipt.json
      carrel receipt j-7k2m4qpz --json | jq .reported.inputs.files
    """
    with Client.from_environment(site) as client:
        found = client.receipt(request_id)
    if as_json:
        click.echo(json.dumps(_content(found), indent=2))
        return
    if target == Path("-"):
        click.echo(found, nl=False)
        return
    path = target or Path(f"{request_id}.receipt.json")
    write_file(path, [found], force=force)
    click.echo(f"Wrote {display.printable(str(path))}. Check it with: carrel verify {path}")


def _content(crate: bytes) -> dict[str, object]:
    return read_receipt(parse_object(crate, "The answer")).model_dump(mode="json")


COMMANDS: dict[str, click.Command] = {"receipt": receipt_command}
