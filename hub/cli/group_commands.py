"""``carrel group``: the quota tree, members and teachers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace

import click

from ..client import values
from ..config import StateFolder
from ..errors import Conflict, InvalidInput
from ..ports.store import Store
from ..quota_tree import QuotaTree, check_group_name
from ..scheduling.model import Group
from ..store import open_store
from . import membership
from .options import existing, operator, state_option

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 366 * 86400


def _span(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """A span of time as everywhere on the command line, in seconds."""
    if value is None:
        return None
    try:
        seconds = values.seconds(value)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from error
    if seconds > _LONGEST:
        raise click.BadParameter(f"{value!r} is longer than a year.")
    return seconds


max_devices = click.option(
    "--max-devices",
    metavar="N",
    type=click.IntRange(0, 100_000),
    help="Devices that all members together hold at one time.",
)
max_devices_per_user = click.option(
    "--max-devices-per-user",
    metavar="N",
    type=click.IntRange(0, 100_000),
    help="Devices that one member holds at one time.",
)
max_time = click.option(
    "--max-time",
    metavar="SPAN",
    callback=_span,
    help=f"Longest time limit: {values.TIME_HELP}.",
)
idle = click.option(
    "--idle",
    metavar="SPAN",
    callback=lambda context, parameter, value: (
        0 if value == "0" else _span(context, parameter, value)
    ),
    help="After how long without work a session with devices is warned and then stopped; "
    "0 for never.",
)
parent = click.option(
    "--parent", metavar="GROUP", help="Group above, whose limits bind too; '' for none."
)
member = click.option(
    "--member",
    "members",
    metavar="NAME",
    multiple=True,
    help="Make a member (Carrel has to be running); may be repeated.",
)
teacher = click.option(
    "--teacher",
    "teachers",
    metavar="NAME",
    multiple=True,
    help="Give the role of teacher in this group; may be repeated.",
)


@click.group()
def group() -> None:
    """Groups, their limits, members and teachers.

    A group is a course, a lab or a department. Its limits, and those of the groups above it,
    decide what its members may hold. Members are those of the JupyterHub group of that name;
    teachers see the requests of their group.

    \b
    Examples:
      carrel group add cs101 --max-devices 4 --max-devices-per-user 1 --max-time 2h
      carrel group set cs101 --teacher grace --member ada --member ben
      carrel group list
    """


@group.command(short_help="Make a group.")
@click.argument("name")
@state_option
@parent
@max_devices
@max_devices_per_user
@max_time
@idle
@member
@teacher
def add(
    *,
    name: str,
    state: StateFolder,
    parent: str | None,
    max_devices: int | None,
    max_devices_per_user: int | None,
    max_time: int | None,
    idle: int | None,
    members: tuple[str, ...],
    teachers: tuple[str, ...],
) -> None:
    """Make a group.

    Without --max-devices its members may run on CPU only. What is not given is: 1 device per
    member (0 where the group has none), a longest time limit of 8h, and 30m without work.

    \b
    Examples:
      carrel group add cs --max-devices 8
      carrel group add cs101 --parent cs --max-devices 4 --max-time 2h --member ada
    """
    check_group_name(name)
    limits = (parent, max_devices, max_devices_per_user, max_time, idle)
    made = _changed(Group(name=name), limits)
    if max_devices_per_user is None:
        made = replace(made, max_devices_per_user=min(1, made.max_devices))
    with _store(state) as store:
        if any(known.name == name for known in store.groups()):
            raise Conflict(
                f"There is a group {name} already.",
                accepted=f"Change it with: carrel group set {name}",
            )
        membership.check_members(state, members)
        tree = QuotaTree(store, time.time)
        tree.put(made, who=operator())
        tree.set_teachers(name, teachers, who=operator())
    click.echo(f"Made the group {name}.")
    membership.note_strangers(state, teachers)
    membership.join(state, name, members)


@group.command("set")
@click.argument("name")
@state_option
@parent
@max_devices
@max_devices_per_user
@max_time
@idle
@member
@click.option(
    "--remove-member",
    "leavers",
    metavar="NAME",
    multiple=True,
    help="End a membership (Carrel has to be running); may be repeated.",
)
@teacher
@click.option(
    "--remove-teacher",
    "former",
    metavar="NAME",
    multiple=True,
    help="Take the role of teacher away; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Only say what it would mean now.")
def set_(
    *,
    name: str,
    state: StateFolder,
    parent: str | None,
    max_devices: int | None,
    max_devices_per_user: int | None,
    max_time: int | None,
    idle: int | None,
    members: tuple[str, ...],
    leavers: tuple[str, ...],
    teachers: tuple[str, ...],
    former: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change a group; what is not named stays as it is.

    A limit that is lowered stops nothing that runs: it holds for what starts from now on.

    \b
    Examples:
      carrel group set cs101 --max-devices 6
      carrel group set cs101 --idle 45m
      carrel group set cs101 --teacher grace --remove-teacher alan
      carrel group set cs101 --member ada --remove-member ben
    """
    limits = (parent, max_devices, max_devices_per_user, max_time, idle)
    if not any((members, leavers, teachers, former)) and all(one is None for one in limits):
        raise click.UsageError("Say what to change, with one of the options.")
    with _store(state) as store:
        before = store.group(name)
        membership.check_members(state, (*members, *leavers))
        tree, after = QuotaTree(store, time.time), _changed(before, limits)
        for sentence in tree.preview(after) if after != before else ():
            click.echo(sentence)
        if dry_run:
            click.echo("Nothing was changed.")
            return
        tree.put(after, who=operator())
        wanted = {*store.teachers(name), *teachers} - set(former)
        tree.set_teachers(name, wanted, who=operator())
    click.echo(f"The group {name} is set.")
    membership.note_strangers(state, teachers)
    membership.join(state, name, members)
    membership.leave(state, name, leavers)


@group.command(short_help="Remove a group.")
@click.argument("name")
@state_option
def remove(*, name: str, state: StateFolder) -> None:
    """Remove a group; its past requests and its ledger are kept, and so is JupyterHub's group.

    Refused while requests of it wait or run, or groups stand below it.

    \b
    Example:
      carrel group remove cs101
    """
    with _store(state) as store:
        QuotaTree(store, time.time).remove(name, who=operator())
    click.echo(f"Removed the group {name}. Its requests and its ledger are kept.")


@group.command()
@click.argument("name")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(*, name: str, state: StateFolder, as_json: bool) -> None:
    """Show a group: limits, teachers, and members where Carrel is running.

    \b
    Example:
      carrel group show cs101
    """
    with _store(state) as store:
        found, teachers = store.group(name), store.teachers(name)
    members = membership.members(state, name)
    if as_json:
        shown = {**asdict(found), "teachers": list(teachers), "members": members}
        click.echo(json.dumps(shown))
        return
    click.echo(f"Group                 {found.name}")
    click.echo(f"Above it              {found.parent or 'nothing'}")
    click.echo(f"Devices at one time   {found.max_devices}")
    click.echo(f"Devices per member    {found.max_devices_per_user}")
    click.echo(f"Longest time limit    {_shown(found.max_seconds)}")
    click.echo(
        f"Idle time             {_shown(found.idle_seconds) if found.idle_seconds else 'any'}"
    )
    click.echo(f"Teachers              {', '.join(teachers) or 'none'}")
    known = "unknown: Carrel is not running" if members is None else ", ".join(members) or "none"
    click.echo(f"Members               {known}")


@group.command("list")
@state_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_(*, state: StateFolder, as_json: bool) -> None:
    """List the groups with their limits.

    \b
    Example:
      carrel group list --json
    """
    with _store(state) as store:
        found = store.groups()
    if as_json:
        for one in found:
            click.echo(json.dumps(asdict(one)))
        return
    if not found:
        click.echo("There is no group yet. Make one with: carrel group add NAME --max-devices N")
        return
    width = max(len("GROUP"), *(len(one.name) for one in found))
    click.echo(f"{'GROUP':<{width}}  DEVICES  PER MEMBER  LONGEST  ABOVE")
    for one in found:
        click.echo(
            f"{one.name:<{width}}  {one.max_devices:>7}  {one.max_devices_per_user:>10}  "
            f"{_shown(one.max_seconds):>7}  {one.parent or ''}".rstrip()
        )


@contextmanager
def _store(state: StateFolder) -> Iterator[Store]:
    existing(state)
    with closing(open_store(state.database)) as store:
        yield store


def _changed(
    before: Group, limits: tuple[str | None, int | None, int | None, int | None, int | None]
) -> Group:
    """What is None stays as it is."""
    parent, max_devices, max_devices_per_user, max_time, idle = limits
    return replace(
        before,
        parent=before.parent if parent is None else parent or None,
        max_devices=before.max_devices if max_devices is None else max_devices,
        max_devices_per_user=(
            before.max_devices_per_user if max_devices_per_user is None else max_devices_per_user
        ),
        max_seconds=before.max_seconds if max_time is None else max_time,
        idle_seconds=before.idle_seconds if idle is None else idle,
    )


def _shown(seconds: int) -> str:
    for unit, size in reversed(_UNITS.items()):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


COMMANDS: dict[str, click.Command] = {"group": group}
