"""``carrel pool``: list devices; drain, quarantine and release them (administrators)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import click

from ...client import Client
from ...errors import InvalidInput
from ...schemas import PoolOut, parsers
from ...schemas.admin import ConsequencesOut
from ..common import display
from ..common.client_command import ClientCommand, ListOptions, json_option, site_option

F = TypeVar("F", bound=Callable[..., object])


def target_argument(function: F) -> F:
    return click.argument("target")(function)


@click.group("pool", cls=ListOptions, invoke_without_command=True)
@json_option
@site_option
@click.pass_context
def pool_command(ctx: click.Context, as_json: bool, site: str | None) -> None:
    """List the devices and reservations of the pool; administrators drain and quarantine.

    TARGET is the ID of a device, a unique part of it, NODE#INDEX, or the name of a node.

    \b
    STATE is
      free      available
      yours     in use by you
      taken     in use by another user
      busy      in use by a process outside Carrel
      sick      out of service because of errors, or quarantined
      gone      not responding
      draining  no new work starts on it

    \b
    Examples:
      carrel pool
      carrel pool drain node1 --until 2h --why 'A new fan.'
      carrel pool release node1#0
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(ls_command, as_json=as_json, site=site)


@pool_command.command("ls", cls=ClientCommand, short_help="The default command.")
@json_option
@site_option
def ls_command(as_json: bool, site: str | None) -> None:
    """List the devices and the next reservations; the default command of `pool`.

    \b
    Example:
      carrel pool ls --json
    """
    with Client.from_environment(site) as client:
        found = client.pool()
    if as_json:
        display.as_json(found)
    else:
        display.pool_table(found, time.time())


@pool_command.command("drain", cls=ClientCommand)
@target_argument
@click.option(
    "--until",
    metavar="WHEN",
    help=f"Stop remaining work then: {parsers.MOMENT_HELP}. A time without an offset is local "
    "time. Without WHEN work ends by itself.",
)
@click.option(
    "--why", default="", metavar="TEXT", help="Reason, shown to all users with the device."
)
@click.option("--dry-run", is_flag=True, help="Only preview the effect.")
@json_option
@site_option
def drain_command(
    *,
    target: str,
    until: str | None,
    why: str,
    dry_run: bool,
    as_json: bool,
    site: str | None,
    exact: bool = False,
) -> None:
    """Drain a device or a node: no new work starts on it (administrators).

    \b
    Examples:
      carrel pool drain node1
      carrel pool drain node1#0 --until 2h --why 'A new fan.'
      carrel pool drain node1 --until '2026-11-22 18:00' --dry-run
    """
    now = time.time()
    at = parsers.moment(until, now) if until else None
    with Client.from_environment(site) as client:
        name = target if exact else _target(client.pool(), target)
        consequences = client.drain(name, why=why, until=at, dry_run=dry_run)
    if at is not None and not as_json:
        click.echo(f"Work still running at {display.local_time(at, now)} is stopped.")
    _print(consequences, as_json=as_json)


@pool_command.command("undrain", cls=ClientCommand)
@target_argument
@json_option
@site_option
def undrain_command(target: str, as_json: bool, site: str | None, *, exact: bool = False) -> None:
    """End the drain of a device or a node (administrators).

    \b
    Example:
      carrel pool undrain node1
    """
    with Client.from_environment(site) as client:
        name = target if exact else _target(client.pool(), target)
        consequences = client.undrain(name)
    _print(consequences, as_json=as_json)


@pool_command.command("quarantine", cls=ClientCommand)
@target_argument
@click.option(
    "--why", required=True, metavar="TEXT", help="Reason, shown to all users with the device."
)
@json_option
@site_option
def quarantine_command(*, target: str, why: str, as_json: bool, site: str | None) -> None:
    """Quarantine a device: no new work starts until it is released (administrators).

    Running work continues. Carrel quarantines a device that reports errors automatically, and
    then runs its jobs again on other devices.

    \b
    Example:
      carrel pool quarantine node1#0 --why 'It computes wrong sums.'
    """
    with Client.from_environment(site) as client:
        consequences = client.quarantine(_target(client.pool(), target), why)
    _print(consequences, as_json=as_json)


@pool_command.command("release", cls=ClientCommand)
@target_argument
@json_option
@site_option
def release_command(target: str, as_json: bool, site: str | None) -> None:
    """Release a device from quarantine (administrators).

    \b
    Example:
      carrel pool release node1#0
    """
    with Client.from_environment(site) as client:
        consequences = client.unquarantine(_target(client.pool(), target))
    _print(consequences, as_json=as_json)


def _target(pool: PoolOut, given: str) -> str:
    """Return the ID of a device from its short form; other names may be nodes.

    Raises:
        InvalidInput: several devices match.
    """
    exact = [d.id for d in pool.devices if given in (d.id, f"{d.node}#{d.index}")]
    if len(exact) == 1 or any(device.node == given for device in pool.devices):
        return exact[0] if exact else given
    # Devices of two drivers on a node may have the same number.
    found = exact or [device.id for device in pool.devices if given in device.id]
    if len(found) > 1:
        raise InvalidInput(
            f"Several devices match {given!r}.", accepted=f"One of: {', '.join(found)}."
        )
    return found[0] if found else given


def _print(consequences: ConsequencesOut, *, as_json: bool) -> None:
    if as_json:
        display.as_json(consequences)
        return
    for sentence in consequences.sentences:
        click.echo(sentence)
    if not consequences.saved:
        click.echo("Nothing was changed.")


COMMANDS: dict[str, click.Command] = {"pool": pool_command}
