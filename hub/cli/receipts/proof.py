"""Print what the file of a proof proves, for ``carrel verify``."""

from __future__ import annotations

import json
import time

import click

from ...messages import units
from ...proofs.document import KIND
from ...proofs.verification import ProvedLine, VerifiedProof, read_proof, verify_proof
from ...provenance.signature import PublicKey
from ..common import display

_LATE_SECONDS = 3600.0
"""A line that entered the log later than this is proved from then on only, and says so."""


def is_proof(content: bytes) -> bool:
    """Return whether a file is one of a proof, by its kind."""
    if KIND.encode() not in content:
        return False
    try:
        found = json.loads(content)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("kind") == KIND


def print_proof(content: bytes, key: PublicKey, *, as_json: bool) -> None:
    """Verify a proof and print its lines. Raises UnprovenLine."""
    proved = verify_proof(read_proof(content.decode("utf-8", "replace")), key)
    if as_json:
        said = {"valid": True, "site": proved.head.site, "key": key.id}
        display.as_json(said | {"signed_at": proved.head.at, "lines": _as_json(proved)})
        return
    now, count = time.time(), len(proved.lines)
    click.echo(display.printable(f"Valid: {count} line{'s' * (count != 1)} of {proved.head.site}."))
    signed = display.exact_time(proved.head.at, now)
    click.echo(f"In its log since before {signed}, when it signed the head with the key {key.id}.")
    for line in proved.lines:
        if line.table != "ledger":
            click.echo(display.printable(_sentence(line, now)))
    charged = [line for line in proved.lines if line.table == "ledger" and line.line is not None]
    if charged:
        total = sum(float(line.line["device_seconds"]) for line in charged if line.line)
        click.echo(f"Usage in {len(charged)} ledger entries: {units.device_hours(total)}.")
    if any(line.entered_at > _own_time(line) + _LATE_SECONDS for line in proved.lines):
        click.echo(
            "Some lines entered the log later than their own time, as when the site began to keep "
            "it: for these, the log proves nothing about the time before."
        )


def _as_json(proved: VerifiedProof) -> list[dict[str, object]]:
    return [
        {"log": line.log, "table": line.table, "entered_at": line.entered_at, "line": line.line}
        for line in proved.lines
    ]


def _sentence(line: ProvedLine, now: float) -> str:
    if line.line is None:
        return f"A row of the table {line.table} was missing when it should have been entered."
    entered = display.exact_time(line.entered_at, now)
    at = display.exact_time(_own_time(line), now)
    row = line.line
    match line.table:
        case "submissions":
            what = f"Submission {row['number']} of {row['person']} to {row['course']}/"
            return (
                f"{what}{row['assignment']}, received {at}, in the log since {entered}, "
                f"SHA-256 {row['files']['sha256']}"
            )
        case "feedback":
            return (
                f"Feedback on submission ID {row['submission']}, released {at} by "
                f"{row['released_by']}, in the log since {entered}, "
                f"SHA-256 {row['files']['sha256']}"
            )
        case "leaderboard_entries":
            return (
                f"Weights of {row['person']} for the leaderboard of {row['course']}/"
                f"{row['assignment']}, received {at}, in the log since {entered}, SHA-256 "
                f"{row['sha256']}: {row['sentence']}"
            )
        case _:
            return f"A line of the table {line.table}, in the log since {entered}."


def _own_time(line: ProvedLine) -> float:
    row = line.line or {}
    names = ("at", "released_at", "ends_at", "sent_at")
    return next((float(row[name]) for name in names if name in row), line.entered_at)
