"""``carrel why`` and ``carrel change``: explain and change a queued request."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from ...client import Client
from ...errors import InvalidInput
from ...messages import units
from ...messages.timed_text import expected_start_or_unknown, timed_reasons
from ...schemas import ChangeIn, RequestOut, parsers
from ...schemas.explanation import SuggestionOut, WhyOut
from ..common import display
from ..common.client_command import (
    ClientCommand,
    DeviceCount,
    json_option,
    request_argument,
    site_option,
)
from ..common.terminal import plain

_MINUTE = 60.0
_ANY_MODEL = "any_model"
"""The ``change`` of a suggestion that drops the model."""


@click.command("why", cls=ClientCommand)
@request_argument
@json_option
@site_option
def why_command(request_id: str, as_json: bool, site: str | None) -> None:
    """Show why a request is queued, which requests are ahead, and what would start it sooner.

    Each suggestion was tried on a copy of the current queue.

    \b
    Examples:
      carrel why j-7k2m4qpz
      carrel why j-7k2m4qpz --json | jq '.suggestions[0]'
    """
    with Client.from_environment(site) as client:
        found = client.why(request_id)
    if as_json:
        display.as_json(found)
    else:
        _print(found, time.time())


@click.command("change", cls=ClientCommand)
@request_argument
@click.option(
    "--devices", type=DeviceCount(min=1), help="New number of devices; fewer than before."
)
@click.option("--time", "span", metavar="SPAN", help=f"New time limit; {parsers.TIME_HELP}.")
@click.option(
    "--model",
    metavar="NAME",
    help="New device model, as `carrel pool` shows it; any for all models.",
)
@click.option("--group", help="Another of your groups.")
@json_option
@site_option
def change_command(
    *,
    request_id: str,
    devices: int | None,
    span: str | None,
    model: str | None,
    group: str | None,
    as_json: bool,
    site: str | None,
) -> None:
    """Change a queued request to need less, or other devices. It keeps its age in the queue.

    `carrel why` shows what would help.

    \b
    Examples:
      carrel change j-7k2m4qpz --devices 1
      carrel change j-7k2m4qpz --time 30m
      carrel change j-7k2m4qpz --model any
    """
    fields: dict[str, object] = {
        name: value for name, value in (("devices", devices), ("group", group)) if value is not None
    }
    if span is not None:
        fields["seconds"] = parsers.seconds(span)
    if model is not None:
        fields["model"] = parsers.model(model)
    if not fields:
        raise InvalidInput(
            "Give at least one option to change.",
            accepted="Use --devices, --time, --model or --group.",
        )
    wanted = ChangeIn.model_validate(fields)
    with Client.from_environment(site) as client:
        found = client.change(request_id, wanted)
    if as_json:
        display.as_json(found)
    else:
        click.echo(f"{found.id} now requests {_requested(found)}.")


def _requested(found: RequestOut) -> str:
    return (
        f"{units.devices(found.devices, found.model)}, "
        f"{units.duration(found.seconds)} at most, "
        f"in the group {found.group}"
    )


def _print(found: WhyOut, now: float) -> None:
    """Print the reasons of a queued request, the requests ahead of it, and the suggestions."""
    for sentence in found.sentences:
        click.echo(plain(sentence))
    for reason in filter(None, (*timed_reasons(found), expected_start_or_unknown(found, now))):
        click.echo(display.dated(reason, now))
    helps = [line for each in found.suggestions for line in _help(found.request_id, each)]
    for title, lines in (("Ahead of it:", found.ahead_sentences), ("What would help:", helps)):
        if lines:
            click.echo(title)
        for line in lines:
            click.echo(f"  {plain(line)}")


def _help(request_id: str, suggestion: SuggestionOut) -> Iterator[str]:
    """Yield a suggestion, and the command that applies it."""
    yield suggestion.sentence
    options = [
        f"--{name} {value}"
        for name, value in (
            ("devices", suggestion.devices),
            ("model", parsers.ANY_MODEL if suggestion.change == _ANY_MODEL else ""),
            ("time", suggestion.seconds and f"{suggestion.seconds / _MINUTE:.0f}m"),
            ("group", suggestion.group),
        )
        if value
    ]
    if options:
        yield f"  carrel change {request_id} {' '.join(options)}"


COMMANDS: dict[str, click.Command] = {"why": why_command, "change": change_command}
