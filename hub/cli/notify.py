"""``carrel notify``: messages about one's own sessions and jobs."""

from __future__ import annotations

import time

import click

from ..client import Client
from ..errors import InvalidArgument
from ..schemas.notifications.bodies import ChannelOut, DeliveryTestOut
from ..schemas.notifications.events import NotificationEvent
from .common import display
from .common.client_command import ClientCommand, ListOptions, json_option, site_option

_EVENTS = [event.value for event in NotificationEvent]


@click.group("notify", cls=ListOptions)
def notify_command() -> None:
    """Messages by e-mail, webhook or chat about your sessions and jobs. None are sent unless you
    choose them.

    \b
    Examples:
      carrel notify set --on session-ready --on job-attention
      carrel notify set jsons://hooks.example.edu/carrel --on job-ended
      carrel notify test
      carrel notify off n-1a2b3c4d5e
    """


@notify_command.command("list", cls=ClientCommand, short_help="List your channels.")
@json_option
@site_option
def list_channels(*, as_json: bool, site: str | None) -> None:
    """List your channels with their events, and what was not delivered.

    \b
    Example:
      carrel notify list
    """
    with Client.from_environment(site) as client:
        found = client.notifications()
    if as_json:
        display.as_json(found)
        return
    if found.channels:
        _table(found.channels)
    else:
        click.echo(f"You have no channels. Accepted: {found.sentence}")
    now = time.time()
    for each in found.dropped:
        click.echo(
            f"Not delivered, {display.local_time(each.at, now)}: {each.text} {each.why}",
        )


@notify_command.command("set", cls=ClientCommand, short_help="Add a channel, or change its events.")
@click.argument("channel", required=False, default="")
@click.option(
    "--on",
    "on",
    multiple=True,
    type=click.Choice(_EVENTS),
    help="An event to tell of, in place of the present ones; repeatable.",
)
@json_option
@site_option
def set_channel(*, channel: str, on: tuple[str, ...], as_json: bool, site: str | None) -> None:
    """Choose the events of CHANNEL: the id of one of yours, or an address to add.

    An address is an e-mail address, or the Apprise URL of a service that the site allows. Without
    CHANNEL it is your e-mail address, if the site knows it.

    \b
    Examples:
      carrel notify set --on session-ready --on job-attention
      carrel notify set n-1a2b3c4d5e --on job-ended
      carrel notify set jsons://hooks.example.edu/carrel --on job-ended
    """
    events = [NotificationEvent(each) for each in on]
    if not events:
        raise InvalidArgument(
            "No event is given.", accepted=f"Give --on with one of {', '.join(_EVENTS)}."
        )
    with Client.from_environment(site) as client:
        known = {each.id for each in client.notifications().channels}
        changed = channel if channel in known else client.add_channel(channel, events).id
        made = client.choose_events(changed, events)
    if as_json:
        display.as_json(made)
        return
    told = ", ".join(made.events)
    click.echo(f"{made.id} ({made.address}): {told}.")
    if not made.confirmed:
        click.echo("Open the link that was sent to this address to confirm it.")
    if made.problem:
        click.echo(made.problem)


@notify_command.command("off", cls=ClientCommand, short_help="Remove a channel, or all.")
@click.argument("channel", required=False, default="")
@json_option
@site_option
def remove_channel(*, channel: str, as_json: bool, site: str | None) -> None:
    """Remove CHANNEL, by its id; without it, all your channels. Nothing more is sent to it.

    \b
    Examples:
      carrel notify off n-1a2b3c4d5e
      carrel notify off
    """
    with Client.from_environment(site) as client:
        gone = [channel] if channel else [each.id for each in client.notifications().channels]
        for each in gone:
            client.remove_channel(each)
    if as_json:
        display.as_json({"removed": gone})
        return
    click.echo(f"Removed {', '.join(gone)}." if gone else "You have no channels.")


@notify_command.command("test", cls=ClientCommand, short_help="Send a test message.")
@click.argument("user", required=False, default="")
@click.option("--channel", default="", metavar="ID", help="Only to this channel.")
@json_option
@site_option
def send_test(*, user: str, channel: str, as_json: bool, site: str | None) -> None:
    """Send a test message to all your channels now, and show whether it was accepted.

    Administrators may test the channels of another USER. The exit status is 1 if a message was
    not accepted.

    \b
    Examples:
      carrel notify test
      carrel notify test student1
    """
    with Client.from_environment(site) as client:
        results = client.test_notifications(channel, user)
    if not display.listed(results, empty="", as_json=as_json):
        for each in results:
            click.echo(_result(each))
    if not all(each.delivered for each in results):
        raise click.exceptions.Exit(1)


def _result(tested: DeliveryTestOut) -> str:
    said = tested.sentence or "accepted."
    return f"{tested.channel} ({tested.address}): {said}"


def _table(channels: list[ChannelOut]) -> None:
    rows = [
        [each.id, each.address, ", ".join(each.events) or "none", _problem(each)]
        for each in channels
    ]
    display.table(["ID", "ADDRESS", "EVENTS", "PROBLEM"], rows)


def _problem(channel: ChannelOut) -> str:
    if not channel.confirmed:
        return "Not confirmed yet."
    return f"Stopped. {channel.problem}" if channel.stopped else channel.problem


COMMANDS: dict[str, click.Command] = {"notify": notify_command}
