"""Write files of proofs."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import InvalidInput
from ...proofs.document import ProofDocument
from . import display


def write_proof(path: Path, document: ProofDocument, *, as_json: bool) -> None:
    """Write a proof, and say how to verify it. Raises InvalidInput."""
    try:
        path.write_text(document.model_dump_json(indent=1) + "\n", encoding="ascii")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
    lines = sum(len(log.lines) for log in document.logs)
    if as_json:
        display.as_json({"file": str(path), "lines": lines})
        return
    shown = display.printable(str(path))
    click.echo(f"Wrote the proof of {lines} line{'s' * (lines != 1)} to {shown}.")
    click.echo(f"Verify it without the site: carrel verify {shown} --key site.pem")
