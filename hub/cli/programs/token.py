"""``carrel token`` and ``carrel approve``: programs with a budget of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from ...client import Client
from ...schemas.programs.bodies import ProgramIn, ProgramOut
from ..common import display
from ..common.client_command import ClientCommand, ListOptions, json_option, site_option

_HOURS = click.FloatRange(min=0.001, max=1e9)


@click.group("token", cls=ListOptions, subcommand_metavar="create|ls|revoke …")
def token_command() -> None:
    """Tokens of programs: each has a budget of its own, and can be revoked.

    A program submits jobs in your name, within its budget, and sees only its own jobs. Give the
    token to `carrel mcp`, or to a script in CARREL_TOKEN.

    \b
    Examples:
      carrel token create --program tuner --device-hours 5 --approve-above 1
      carrel token ls
      carrel token revoke tuner
    """


@token_command.command("create", cls=ClientCommand, short_help="Create a program and its token.")
@click.option("--program", "name", required=True, metavar="NAME", help="Such as tuning-agent.")
@click.option(
    "--device-hours", required=True, type=_HOURS, metavar="HOURS", help="Its budget, in all."
)
@click.option(
    "--approve-above",
    type=click.FloatRange(min=0, max=1e9),
    metavar="HOURS",
    help="Jobs of more device-hours wait for your approval; 0: all with devices.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=30,
    show_default=True,
    help="How long the token works.",
)
@click.option(
    "--read-mine", is_flag=True, help="The program may also read your other sessions and jobs."
)
@json_option
@site_option
def create_command(
    *,
    name: str,
    device_hours: float,
    approve_above: float | None,
    days: int,
    read_mine: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Create a program, and print its token. The token is shown only once.

    \b
    Example:
      carrel token create --program tuner --device-hours 5 --approve-above 1 --days 7
    """
    body = ProgramIn(
        name=name,
        device_seconds=device_hours * 3600,
        approve_above=None if approve_above is None else approve_above * 3600,
        days=days,
        reads_owner=read_mine,
    )
    with Client.from_environment(site) as client:
        made = client.create_program(body)
    if as_json:
        display.as_json(made)
        return
    until = display.local_time(made.program.expires_at, time.time())
    click.echo(
        f"Created the program {name}: {device_hours:g} device-hours until {until}. Its token, "
        "which is not shown again:",
        err=True,
    )
    click.echo(made.token)


@token_command.command("ls", cls=ClientCommand, short_help="List programs and their budgets.")
@click.option("--all", "everyone", is_flag=True, help="Of all users, for administrators.")
@json_option
@site_option
def list_command(*, everyone: bool, as_json: bool, site: str | None) -> None:
    """List your programs with what each has used, also expired and revoked ones.

    \b
    Example:
      carrel token ls --json
    """
    with Client.from_environment(site) as client:
        found = client.programs(everyone=everyone)
    empty = "There are no programs. Create one with: carrel token create --program NAME …"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    display.table(
        ["ID", "PROGRAM", "OWNER", "USED", "RESERVED", "BUDGET", "JOBS", "STATE"], _rows(found)
    )


def _rows(found: Sequence[ProgramOut]) -> list[list[str]]:
    now = time.time()
    return [
        [
            *(each.id, each.name, each.owner),
            *(f"{amount / 3600:.2f} h" for amount in (each.used, each.reserved)),
            f"{each.device_seconds / 3600:g} h",
            str(each.jobs),
            _state(each, now),
        ]
        for each in found
    ]


def _state(each: ProgramOut, now: float) -> str:
    if each.revoked_at is not None:
        return f"revoked by {each.revoked_by}"
    word = "until" if each.works else "expired"
    return f"{word} {display.local_time(each.expires_at, now)}"


@token_command.command("revoke", cls=ClientCommand, short_help="Revoke a program.")
@click.argument("program")
@json_option
@site_option
def revoke_command(*, program: str, as_json: bool, site: str | None) -> None:
    """Revoke PROGRAM: a name of yours, or an id. Administrators may revoke any by its id.

    Its token is refused at once. Its queued jobs are cancelled; its running jobs go on.

    \b
    Example:
      carrel token revoke tuner
    """
    with Client.from_environment(site) as client:
        revoked = client.revoke_program(program)
    if as_json:
        display.as_json(revoked)
        return
    click.echo(f"Revoked the program {revoked.name}; its queued jobs are cancelled.")


@click.command("approve", cls=ClientCommand)
@click.argument("jobs", nargs=-1)
@json_option
@site_option
def approve_command(*, jobs: tuple[str, ...], as_json: bool, site: str | None) -> None:
    """Approve jobs of your programs; without JOBS, list those that wait for it.

    To refuse a job, cancel it.

    \b
    Examples:
      carrel approve
      carrel approve j-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        for job in jobs:
            client.approve(job)
            if not as_json:
                click.echo(f"Approved {job}.")
        if jobs:
            return
        found = client.approvals()
    if display.listed(found, empty="No job waits for your approval.", as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            *(each.request.id, each.request.program, str(each.request.devices)),
            f"{each.request.devices * each.request.seconds / 3600:.2f} h",
            display.local_time(each.cancelled_at, now),
        ]
        for each in found
    ]
    display.table(["JOB", "PROGRAM", "DEVICES", "AT MOST", "CANCELLED AT"], rows)


COMMANDS: dict[str, click.Command] = {"token": token_command, "approve": approve_command}
