"""``carrel group``: the quota tree, members and teachers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace

import click

from ..client import values
from ..config import StateFolder
from ..errors import Conflict, InvalidInput
from ..ports.store import Store
from ..scheduling.model import Group
from ..store import open_store
from ..wire import NAME
from . import membership
from .options import existing, state_option

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
    members: tuple[str, ...],
    teachers: tuple[str, ...],
) -> None:
    """Make a group.

    Without --max-devices its members may run on CPU only. What is not given is: 1 device per
    member (0 where the group has none), and a longest time limit of 8h.

    \b
    Examples:
      carrel group add cs --max-devices 8
      carrel group add cs101 --parent cs --max-devices 4 --max-time 2h --member ada
    """
    _check_name(name)
    made = _changed(Group(name=name), parent, max_devices, max_devices_per_user, max_time)
    if max_devices_per_user is None:
        made = replace(made, max_devices_per_user=min(1, made.max_devices))
    with _store(state) as store:
        if any(known.name == name for known in store.groups()):
            raise Conflict(
                f"There is a group {name} already.",
                accepted=f"Change it with: carrel group set {name}",
            )
        membership.check_members(state, members)
        store.put_group(made)
        store.set_teachers(name, teachers)
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
def set_(
    *,
    name: str,
    state: StateFolder,
    parent: str | None,
    max_devices: int | None,
    max_devices_per_user: int | None,
    max_time: int | None,
    members: tuple[str, ...],
    leavers: tuple[str, ...],
    teachers: tuple[str, ...],
    former: tuple[str, ...],
) -> None:
    """Change a group; what is not named stays as it is.

    A limit that is lowered stops nothing that runs: it holds for what starts from now on.

    \b
    Examples:
      carrel group set cs101 --max-devices 6
      carrel group set cs101 --teacher grace --remove-teacher alan
      carrel group set cs101 --member ada --remove-member ben
    """
    limits = (parent, max_devices, max_devices_per_user, max_time)
    if not any((members, leavers, teachers, former)) and all(one is None for one in limits):
        raise click.UsageError("Say what to change, with one of the options.")
    with _store(state) as store:
        before = store.group(name)
        membership.check_members(state, (*members, *leavers))
        after = _changed(before, *limits)
        if after != before:
            store.put_group(after)
        known = store.teachers(name)
        wanted = tuple(sorted({*known, *teachers} - set(former)))
        if wanted != tuple(sorted(known)):
            store.set_teachers(name, wanted)
    click.echo(f"The group {name} is set.")
    membership.note_strangers(state, teachers)
    membership.join(state, name, members)
    membership.leave(state, name, leavers)


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
    before: Group,
    parent: str | None,
    max_devices: int | None,
    max_devices_per_user: int | None,
    max_time: int | None,
) -> Group:
    return replace(
        before,
        parent=before.parent if parent is None else parent or None,
        max_devices=before.max_devices if max_devices is None else max_devices,
        max_devices_per_user=(
            before.max_devices_per_user if max_devices_per_user is None else max_devices_per_user
        ),
        max_seconds=before.max_seconds if max_time is None else max_time,
    )


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME, name):
        raise InvalidInput(
            f"{name!r} is not a name that a group can have.",
            accepted="It has 1 to 64 of a to z, 0 to 9, dot, underscore, @ and hyphen.",
        )


def _shown(seconds: int) -> str:
    for unit, size in reversed(_UNITS.items()):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


COMMANDS: dict[str, click.Command] = {"group": group}
