"""``carrel site-key``: show the public key of a site, for offline verification."""

from __future__ import annotations

from pathlib import Path

import click

from ...client import Client
from ...errors import InvalidInput
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option


@click.command("site-key", cls=ClientCommand)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the key to a file instead of standard output.",
)
@json_option
@site_option
def site_key_command(*, target: Path | None, as_json: bool, site: str | None) -> None:
    """Show the public key with which the site's receipts and log heads are verified.

    With --site you need not be signed in there. Keep the file: it verifies without the site, and
    shows whether the key of the site has changed.

    \b
    Examples:
      carrel site-key -o site.pem
      carrel site-key --site https://jupyter.example.edu
    """
    with Client(site, "") if site else Client.from_environment() as client:
        key = client.site_key()
    if target is not None:
        try:
            target.write_text(key.pem, encoding="ascii")
        except OSError as error:
            raise InvalidInput(f"{target} cannot be written: {error.strerror}.") from error
    if as_json:
        display.as_json(key)
    elif target is None:
        click.echo(key.pem, nl=False)
    else:
        click.echo(f"Wrote key {key.id} to {display.printable(str(target))}.")


COMMANDS: dict[str, click.Command] = {"site-key": site_key_command}
