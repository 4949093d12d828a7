"""``carrel user``: the embedded accounts."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import click

from ..accounts.names import parse_name
from ..accounts.passwords import random_password
from ..accounts.store import Accounts
from ..config import StateFolder
from ..errors import InvalidInput
from ..store import open_store
from .options import existing, hub_of, state_option

password_stdin = click.option(
    "--password-stdin", is_flag=True, help="Read the password from the first line of stdin."
)


@click.group()
def user() -> None:
    """Accounts: who may sign in.

    These are Carrel's own accounts. Where a site signs people in with something else (OAuth,
    LDAP, PAM), they are not used.

    \b
    Examples:
      carrel user add ada --admin
      carrel user add ben --group cs101
      carrel user passwd ben
    """


@user.command(short_help="Make an account.")
@click.argument("name")
@state_option
@click.option("--admin", is_flag=True, help="May see and stop everything, and use the admin page.")
@click.option(
    "--group", "groups", metavar="GROUP", multiple=True, help="Make a member; may be repeated."
)
@password_stdin
def add(
    *, name: str, state: StateFolder, admin: bool, groups: tuple[str, ...], password_stdin: bool
) -> None:
    """Make an account, with a random password that is shown this once.

    Carrel need not be running, except for --group: membership is JupyterHub's.

    \b
    Examples:
      carrel user add ada --admin
      carrel user add ben --group cs101 --group lab
      printf %s "$PASSWORD" | carrel user add cleo --password-stdin
    """
    name = parse_name(name)
    existing(state)
    _check_groups(state, groups)
    password = _from_stdin() if password_stdin else random_password()
    with _accounts(state) as accounts:
        accounts.add(name, password, admin=admin)
    click.echo(f"Made the account {name}{' (administrator)' if admin else ''}.")
    if not password_stdin:
        click.echo(f"Password, shown this once: {password}")
    if groups:
        with closing(hub_of(state)) as hub:
            # An administrator becomes one at sign-in: the hub lets no service make one.
            hub.add_user(name, admin=False)
            for group in groups:
                hub.add_to_group(group, (name,))
                click.echo(f"{name} is a member of {group}.")


@user.command(short_help="Set a new password.")
@click.argument("name")
@state_option
@password_stdin
@click.option("--random", "at_random", is_flag=True, help="Make one up and print it.")
def passwd(*, name: str, state: StateFolder, password_stdin: bool, at_random: bool) -> None:
    """Set a new password; asked for twice, unless --random or --password-stdin is given.

    It also ends the wait after failed sign-ins. Browsers that are signed in stay so.

    \b
    Examples:
      carrel user passwd student1
      carrel user passwd student1 --random
    """
    if password_stdin and at_random:
        raise click.UsageError("Give --random or --password-stdin, not both.")
    name = parse_name(name)
    existing(state)
    with _accounts(state) as accounts:
        if at_random:
            password = random_password()
        elif password_stdin:
            password = _from_stdin()
        else:
            password = click.prompt("New password", hide_input=True, confirmation_prompt=True)
        accounts.set_password(name, password)
    click.echo(f"Set a new password for {name}.")
    if at_random:
        click.echo(f"Password, shown this once: {password}")


@user.command("list", short_help="List the accounts.")
@state_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_(*, state: StateFolder, as_json: bool) -> None:
    """List the accounts, with role and the day of the last password.

    \b
    Example:
      carrel user list --json
    """
    existing(state)
    with _accounts(state) as accounts:
        found = accounts.all()
    if as_json:
        for one in found:
            click.echo(
                json.dumps(
                    {
                        "name": one.name,
                        "role": _role(one.admin),
                        "created_at": one.created_at,
                        "password_at": one.password_at,
                    }
                )
            )
        return
    if not found:
        click.echo("There is no account yet. Make one with: carrel user add NAME")
        return
    width = max(len("NAME"), *(len(one.name) for one in found))
    click.echo(f"{'NAME':<{width}}  ROLE   PASSWORD SET")
    for one in found:
        click.echo(f"{one.name:<{width}}  {_role(one.admin):<5}  {_day(one.password_at)}")


@user.command(short_help="Remove an account, and stop its sessions.")
@click.argument("name")
@state_option
def remove(*, name: str, state: StateFolder) -> None:
    """Remove an account and the hub's user, and stop that user's sessions.

    Carrel has to be running. The home folder, the requests and the ledger are kept; an account
    of the same name would find them again.

    \b
    Example:
      carrel user remove student3
    """
    name = parse_name(name)
    with _accounts_of_existing(state) as accounts:
        if accounts.find(name) is None:
            accounts.remove(name)  # raises, and lists the accounts there are
        with closing(hub_of(state)) as hub:
            hub.remove_user(name)
        accounts.remove(name)
    click.echo(f"Removed {name}. The home folder and the ledger are kept.")


def _check_groups(state: StateFolder, groups: tuple[str, ...]) -> None:
    """Before anything is made: is the hub there, and does Carrel know the groups?"""
    if not groups:
        return
    with closing(hub_of(state)) as hub:
        hub.users()
    with closing(open_store(state.database)) as store:
        for group in groups:
            store.group(group)


@contextmanager
def _accounts(state: StateFolder) -> Iterator[Accounts]:
    with closing(Accounts(state.accounts)) as accounts:
        yield accounts


@contextmanager
def _accounts_of_existing(state: StateFolder) -> Iterator[Accounts]:
    existing(state)
    with _accounts(state) as accounts:
        yield accounts


def _from_stdin() -> str:
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput("There was no password on stdin.", accepted="Write it as one line.")
    return line


def _role(admin: bool) -> str:
    return "admin" if admin else "user"


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()


COMMANDS: dict[str, click.Command] = {"user": user}
