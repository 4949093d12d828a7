"""``carrel user``: the embedded accounts."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from ...accounts.store import Accounts
from ...accounts.usernames import parse_name
from ...config.settings import Settings
from ...config.state_folder import StateFolder
from ...errors import InvalidInput
from ...groups.people_import import PeopleImport
from ...groups.users import Users, check_own_accounts
from ...messages import units
from ..common import display
from ..common.client_command import ListOptions
from ..common.notes import note
from ..common.operator_options import existing, operator, state_option
from .members import people_of

password_stdin = click.option(
    "--password-stdin", is_flag=True, help="Read the password from the first line of stdin."
)


@click.group(cls=ListOptions)
def user() -> None:
    """Accounts for signing in.

    These are Carrel's own accounts. They are not used on sites with another sign-in (OAuth, LDAP,
    PAM).

    \b
    Examples:
      carrel user add ada --admin
      carrel user add ben --group cs101
      carrel user passwd ben
      carrel user link ben
      carrel user import class.csv --dry-run
    """


@user.command(short_help="Create an account.")
@click.argument("name")
@state_option
@click.option(
    "--admin", is_flag=True, help="Make the user an administrator, who can see and stop everything."
)
@click.option(
    "--group", "groups", metavar="GROUP", multiple=True, help="Add to this group; may be repeated."
)
@password_stdin
def add(
    *, name: str, state: StateFolder, admin: bool, groups: tuple[str, ...], password_stdin: bool
) -> None:
    """Create an account, with a random password that is shown only once.

    Carrel need not be running, except for --group: JupyterHub stores the members.

    \b
    Examples:
      carrel user add ada --admin
      carrel user add ben --group cs101 --group lab
      printf %s "$PASSWORD" | carrel user add cleo --password-stdin
    """
    given = _from_stdin() if password_stdin else ""
    with _people(state) as people:
        password = people.add(name, given, admin=admin, groups=groups, who=operator())
    name = parse_name(name)
    click.echo(f"Created the account {name}{' (administrator)' if admin else ''}.")
    if not password_stdin:
        click.echo(f"Password, shown only once: {password}")
    for group in groups:
        click.echo(f"{name} is a member of {group}.")


@user.command(short_help="Set a new password.")
@click.argument("name")
@state_option
@password_stdin
@click.option("--random", "at_random", is_flag=True, help="Generate a password and print it.")
def passwd(*, name: str, state: StateFolder, password_stdin: bool, at_random: bool) -> None:
    """Set a new password; it is prompted for without --random or --password-stdin.

    It also ends the delay after failed sign-ins, and revokes the sign-ins and tokens of the user.
    Running sessions and jobs continue.

    \b
    Examples:
      carrel user passwd student1
      carrel user passwd student1 --random
    """
    if password_stdin and at_random:
        raise click.UsageError("Give --random or --password-stdin, not both.")
    with _people(state) as people:
        given = ""
        if password_stdin:
            given = _from_stdin()
        elif not at_random:
            given = click.prompt("New password", hide_input=True, confirmation_prompt=True)
        password = people.set_password(name, given, who=operator())
    click.echo(f"Set a new password for {parse_name(name)}.")
    if at_random:
        click.echo(f"Password, shown only once: {password}")


@user.command(short_help="Make a one-time link, by which a user sets a password.")
@click.argument("name")
@state_option
def link(*, name: str, state: StateFolder) -> None:
    """Print a link by which the user chooses a password, for example a forgotten one.

    It works once, within seven days; an earlier link stops working. The present password works
    until then. Behind a reverse proxy, replace the address of this machine by that of the site.

    \b
    Example:
      carrel user link student1
    """
    with _people(state) as people:
        code = people.make_link(name, who=operator())
    click.echo(f"Link for {parse_name(name)}, shown only once: {_link(state, code)}")


@user.command("import", short_help="Create accounts from a table (CSV), with one-time links.")
@click.argument("table", metavar="FILE", type=click.Path(path_type=Path, exists=True))
@state_option
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--skip-wrong", is_flag=True, help="Create the others, although rows are wrong.")
def import_(*, table: Path, state: StateFolder, dry_run: bool, skip_wrong: bool) -> None:
    """Create the accounts of a table whose first line names its columns: name, groups, role.

    Only `name` is required; groups are separated by spaces, and roles are user and admin. Nothing
    is created while a row is wrong, unless --skip-wrong is given. Accounts that exist only join the
    groups that they miss. Prints name and one-time link of each account without a password, as CSV;
    notes go to stderr. Requires a running Carrel: JupyterHub stores the members.

    \b
    Examples:
      carrel user import class.csv --dry-run
      carrel user import class.csv > links.csv
    """
    try:
        text = table.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{table} is not UTF-8 text.", accepted="Save the table as 'CSV UTF-8'."
        ) from None
    with _people(state) as people:
        accounts = PeopleImport(
            people.store, people.clock, people.hub, check_own_accounts(people.accounts)
        )
        found = accounts.preview(text)
        wrong = [row for row in found.rows if row.status == "wrong"]
        for row in found.rows:
            if row.status != "new":
                note(f"line {row.line}: {row.name}: {row.status}: {row.note}")
        if dry_run:
            new = sum(row.status == "new" for row in found.rows)
            note(f"{units.count(new, 'account')} would be created.")
            return
        if wrong and not skip_wrong:
            raise InvalidInput(
                f"{units.count(len(wrong), 'row')} of {table} cannot be used: nothing was created.",
                accepted="Correct them, or leave them out with --skip-wrong.",
            )
        done = accounts.save(text, who=operator())
    click.echo("name,link")
    for each in done.links:
        click.echo(f"{each.name},{_link(state, each.code)}")


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
    values = [
        {
            "name": one.name,
            "role": _role(one.admin),
            "created_at": one.created_at,
            "password_at": one.password_at,
        }
        for one in found
    ]
    empty = "There are no accounts. Create one with: carrel user add NAME"
    if display.listed(values, empty=empty, as_json=as_json):
        return
    width = max(len("NAME"), *(len(one.name) for one in found))
    click.echo(f"{'NAME':<{width}}  ROLE   PASSWORD SET")
    for one in found:
        click.echo(f"{one.name:<{width}}  {_role(one.admin):<5}  {_day(one.password_at)}")


@user.command(short_help="Remove an account, and stop its sessions.")
@click.argument("name")
@state_option
@click.option("--force", is_flag=True, help="Also remove the account of the last administrator.")
def remove(*, name: str, state: StateFolder, force: bool) -> None:
    """Remove an account and its JupyterHub user, and stop the sessions of the user.

    Requires a running Carrel. The home folder, requests and ledger entries are kept; a new
    account of the same name would have them.

    \b
    Example:
      carrel user remove student3
    """
    with _people(state) as people:
        people.remove(name, who=operator(), force=force)
    click.echo(f"Removed {parse_name(name)}. The home folder and ledger entries are kept.")


@contextmanager
def _people(state: StateFolder) -> Iterator[Users]:
    existing(state)
    with people_of(state) as people:
        yield people


@contextmanager
def _accounts(state: StateFolder) -> Iterator[Accounts]:
    with closing(Accounts(state.accounts)) as accounts:
        yield accounts


def _link(state: StateFolder, code: str) -> str:
    return f"{Settings.load(state).public_service_url}/password#{code}"


def _from_stdin() -> str:
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput("No password on stdin.", accepted="Write it as the first line.")
    return line


def _role(admin: bool) -> str:
    return "admin" if admin else "user"


def _day(seconds: float) -> str:
    if not seconds:
        return "never"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()


COMMANDS: dict[str, click.Command] = {"user": user}
