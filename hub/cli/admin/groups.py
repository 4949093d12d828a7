"""``carrel group``: the quota tree, members and teachers."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import click

from ...config.state_folder import StateFolder
from ...errors import Conflict
from ...groups.quotas import GroupQuotas, check_group_name, group_values
from ...scheduling.model.snapshot import Group
from ..common import display
from ..common.client_command import ListOptions
from ..common.operator_options import operator, state_option
from ..common.site_store import site_store
from . import members as admin_members
from .group_options import changed, limit_options, named_any, shown, span

_ONE_OR_NONE = -1
"""Placeholder for the default of ``--max-devices-per-user``, which depends on the max quota."""

member = click.option(
    "--member",
    "members",
    metavar="NAME",
    multiple=True,
    help="Add a member (requires a running Carrel); may be repeated.",
)
teacher = click.option(
    "--teacher",
    "teachers",
    metavar="NAME",
    multiple=True,
    help="Add a teacher; may be repeated.",
)


@click.group(cls=ListOptions)
def group() -> None:
    """Groups, their limits, members and teachers.

    A group is a course, a lab or a department. Its limits and those of its parent groups apply
    to its members, who are the members of the JupyterHub group of that name. Teachers see the
    requests of their group.

    \b
    Examples:
      carrel group add cs101 --max-devices 4 --max-devices-per-user 1 --max-time 2h
      carrel group set cs101 --teacher grace --member ada --member ben
      carrel group list
    """


@group.command(short_help="Create a group.")
@click.argument("name")
@state_option
@limit_options
@member
@teacher
def add(
    *,
    name: str,
    state: StateFolder,
    members: tuple[str, ...],
    teachers: tuple[str, ...],
) -> None:
    """Create a group.

    Without --max-devices its members can use the CPU only. Other defaults: 1 device per member
    (0 if the group has none), a max time limit of 8h, an idle warning after 30m.

    \b
    Examples:
      carrel group add cs --max-devices 8
      carrel group add cs101 --parent cs --max-devices 4 --max-time 2h --member ada
    """
    check_group_name(name)
    made = changed(Group(name=name, max_devices_per_user=_ONE_OR_NONE))
    if made.max_devices_per_user == _ONE_OR_NONE:
        made = replace(made, max_devices_per_user=min(1, made.max_devices))
    with site_store(state) as store:
        if any(known.name == name for known in store.groups()):
            raise Conflict(
                f"The group {name} already exists.",
                accepted=f"Change it with: carrel group set {name}",
            )
        admin_members.check_members(state, members)
        tree = GroupQuotas(store, time.time)
        tree.put(made, who=operator())
        tree.set_teachers(name, teachers, who=operator())
    click.echo(f"Created the group {name}.")
    admin_members.warn_unknown(state, teachers)
    admin_members.join(state, name, members)


@group.command("set")
@click.argument("name")
@state_option
@limit_options
@member
@click.option(
    "--remove-member",
    "leavers",
    metavar="NAME",
    multiple=True,
    help="Remove a member (requires a running Carrel); may be repeated.",
)
@teacher
@click.option(
    "--remove-teacher",
    "former",
    metavar="NAME",
    multiple=True,
    help="Remove a teacher; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Only preview the effect.")
def set_(
    *,
    name: str,
    state: StateFolder,
    members: tuple[str, ...],
    leavers: tuple[str, ...],
    teachers: tuple[str, ...],
    former: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change a group; omitted options keep their values.

    A lower limit stops no running work: it applies to requests that start later. Only an
    exhausted budget stops running work, with a notice and time to save.

    \b
    Examples:
      carrel group set cs101 --max-devices 6
      carrel group set cs101 --guaranteed 2 --weight 2
      carrel group set lab --borrow 4 --lend all --models "NVIDIA H200"
      carrel group set cs101 --idle 45m
      carrel group set cs101 --teacher grace --remove-teacher alan
      carrel group set cs101 --member ada --remove-member ben
    """
    if not any((members, leavers, teachers, former)) and not named_any():
        raise click.UsageError("Give at least one option to change.")
    with site_store(state) as store:
        before = store.group(name)
        admin_members.check_members(state, (*members, *leavers))
        tree, after = GroupQuotas(store, time.time), changed(before)
        for sentence in tree.preview(after) if after != before else ():
            click.echo(sentence)
        if dry_run:
            click.echo("Nothing was changed.")
            return
        tree.put(after, who=operator())
        wanted = {*store.teachers(name), *teachers} - set(former)
        tree.set_teachers(name, wanted, who=operator())
    click.echo(f"Changed the group {name}.")
    admin_members.warn_unknown(state, teachers)
    admin_members.join(state, name, members)
    admin_members.leave(state, name, leavers)


@group.command(short_help="Remove a group.")
@click.argument("name")
@state_option
def remove(*, name: str, state: StateFolder) -> None:
    """Remove a group. Its past requests, ledger entries and JupyterHub group are kept.

    Refused while it has subgroups or requests that are queued or running.

    \b
    Example:
      carrel group remove cs101
    """
    with site_store(state) as store:
        GroupQuotas(store, time.time).remove(name, who=operator())
    click.echo(f"Removed the group {name}. Its requests and ledger entries are kept.")


@group.command()
@click.argument("name")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(*, name: str, state: StateFolder, as_json: bool) -> None:
    """Show a group: limits, teachers, and members if Carrel is running.

    \b
    Example:
      carrel group show cs101
    """
    with site_store(state) as store:
        found, teachers = store.group(name), store.teachers(name)
    members = admin_members.members(state, name)
    if as_json:
        values = {**group_values(found), "teachers": list(teachers), "members": members}
        click.echo(json.dumps(values))
        return
    _line("Group", found.name)
    for label, value in shown(found):
        _line(label, value)
    _line("Teachers", ", ".join(teachers) or "none")
    known = "unknown: Carrel is not running" if members is None else ", ".join(members) or "none"
    _line("Members", known)


@group.command("list")
@state_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_(*, state: StateFolder, as_json: bool) -> None:
    """List the groups with their limits.

    \b
    Example:
      carrel group list --json
    """
    with site_store(state) as store:
        found = store.groups()
    empty = "There are no groups. Create one with: carrel group add NAME --max-devices N"
    if display.listed([group_values(one) for one in found], empty=empty, as_json=as_json):
        return
    width = max(len("GROUP"), *(len(one.name) for one in found))
    click.echo(f"{'GROUP':<{width}}  DEVICES  PER MEMBER  MAX TIME  PARENT")
    for one in found:
        click.echo(
            f"{one.name:<{width}}  {one.max_devices:>7}  {one.max_devices_per_user:>10}  "
            f"{span(one.max_seconds):>8}  {one.parent or ''}".rstrip()
        )


def _line(label: str, value: str) -> None:
    click.echo(f"{label:<21} {value}")


COMMANDS: dict[str, click.Command] = {"group": group}
