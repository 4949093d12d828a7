"""``carrel verify``: check a receipt, a notebook with its receipt, or a proof, offline."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ...client import Client
from ...errors import InvalidInput
from ...provenance.official_check import is_official_check, verify_check
from ...provenance.signature import PublicKey
from ...provenance.verification import VerifiedReceipt, verify
from ..common import display
from ..common.client_command import ClientCommand, json_option
from ..common.notes import note
from .proof import is_proof, print_proof

_MOST_BYTES = 128 << 20


@click.command("verify", cls=ClientCommand)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Public key of the site that must have signed it, from `carrel site-key`.",
)
@click.option("--site", metavar="URL", help="Ask this site for its public key, instead of --key.")
@json_option
def verify_command(*, path: Path, key_file: Path | None, site: str | None, as_json: bool) -> None:
    """Check a receipt, an executed notebook and its content, or a proof of lines of the log.

    With --key no site is asked. Without --key and --site, only changes since the signature are
    found: the file itself names the key, which you have to compare. Proofs, and receipts of
    official checks, need the key.

    \b
    Examples:
      carrel verify j-7k2m4qpz.receipt.json --key site.pem
      carrel verify train-output.ipynb --site https://jupyter.example.edu
      carrel verify ps1.proof.json --key site.pem
      carrel verify ps1.check.json --key site.pem
    """
    content, expected = read_file(path), _expected(key_file, site)
    if is_proof(content):
        print_proof(content, _required(expected, "A proof"), as_json=as_json)
        return
    if is_official_check(content):
        _print_check(content, _required(expected, "The receipt of an official check"), as_json)
        return
    found = verify(content, expected)
    receipt = found.receipt
    if as_json:
        said = {"valid": True, "site": receipt.site, "key": found.key.id}
        display.as_json(said | {"key_checked": found.known, "receipt": receipt})
        return
    what = "notebook and receipt" if found.notebook is not None else "receipt"
    click.echo(display.printable(f"Valid: {what} of {receipt.job} ({receipt.state})."))
    click.echo(display.printable(_by_whom(found)))
    if not found.known:
        note(
            f"The file itself names the key {found.key.id}. Compare it with `carrel site-key "
            f"--json`, or use --key."
        )


def _required(key: PublicKey | None, what: str) -> PublicKey:
    if key is None:
        raise InvalidInput(
            f"{what} is verified with the public key of the site.",
            accepted="--key FILE, from `carrel site-key -o FILE`, or --site URL.",
        )
    return key


def _print_check(content: bytes, key: PublicKey, as_json: bool) -> None:
    check = verify_check(content, key)
    if as_json:
        display.as_json({"valid": True, "key": key.id, "key_checked": True, "check": check})
        return
    points = ""
    if check.points is not None and check.max_points is not None:
        points = f", {check.points:g} of {check.max_points:g} points"
    what = f"official check {check.id} of {check.assignment} of {check.course}"
    asked = display.exact_time(check.asked_at, time.time())
    files = f"version {check.version}, files with the SHA-256 {check.files_sha256}"
    click.echo(display.printable(f"Valid: {what}: {check.outcome}{points}."))
    click.echo(display.printable(f"Asked for by {check.person} {asked}: {files}."))
    click.echo(f"Signed with the key {key.id}.")


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises InvalidInput."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > _MOST_BYTES:
        raise InvalidInput(f"{path} is larger than {_MOST_BYTES >> 20} MiB.")
    return content


def _expected(key_file: Path | None, site: str | None) -> PublicKey | None:
    if key_file is not None and site is not None:
        raise InvalidInput("Both --key and --site are given.", accepted="One of them.")
    if key_file is not None:
        return PublicKey.from_pem(read_file(key_file).decode("utf-8", "replace"))
    if site is None:
        return None
    with Client(site, "") as client:
        return PublicKey.from_base64(client.site_key().key)


def _by_whom(found: VerifiedReceipt) -> str:
    receipt = found.receipt
    return f"Signed by {receipt.site} with the key {found.key.id}, for {receipt.owner}."


COMMANDS: dict[str, click.Command] = {"verify": verify_command}
