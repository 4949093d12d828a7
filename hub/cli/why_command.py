"""What people ask about a request that waits: why, behind whom, and what would help."""

from __future__ import annotations

import time

import click

from ..client import Client
from ..wire import WaitOut
from ..wire.why import WhyOut
from . import printing
from .client_base import ClientCommand, json_option, request_argument, site_option
from .terminal import plain

_MINUTE = 60.0


@click.command("why", cls=ClientCommand)
@request_argument
@json_option
@site_option
def why_command(request_id: str, as_json: bool, site: str | None) -> None:
    """Show why a request waits, behind whom it is, and what would start it sooner.

    What would help was tried on a copy of the queue, as it is at this moment.

    \b
    Examples:
      carrel why j-7k2m4qpz
      carrel why j-7k2m4qpz --json | jq '.suggestions[0]'
    """
    with Client.from_environment(site) as client:
        found = client.why(request_id)
    if as_json:
        printing.as_json(found)
    else:
        _tell(found, time.time())


def _tell(found: WhyOut, now: float) -> None:
    """Why a request waits, then behind whom, then what would help."""
    for sentence in found.sentences:
        click.echo(plain(sentence))
    if found.reserved_from is not None:
        until = printing.local_time(found.reserved_until, now)
        click.echo(f"The reservation: {printing.local_time(found.reserved_from, now)} to {until}.")
    if found.refills_at is not None:
        click.echo(f"The budget is full again: {printing.local_time(found.refills_at, now)}.")
    if found.wait is not None and found.wait.expected_at is not None:
        click.echo(f"Expected to start: {_interval(found.wait, now)}.")
    for title, sentences in (
        ("Ahead of it:", found.ahead_sentences),
        ("What would help:", [each.sentence for each in found.suggestions]),
    ):
        if sentences:
            click.echo(title)
        for sentence in sentences:
            click.echo(f"  {plain(sentence)}")


def _interval(wait: WaitOut, now: float) -> str:
    latest = wait.latest_at
    first = printing.local_time(wait.expected_at, now)
    if latest is None or wait.expected_at is None or latest - wait.expected_at < _MINUTE:
        return first
    return f"{first}, at the latest {printing.local_time(latest, now)}"
