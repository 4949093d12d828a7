"""``carrel audit``: the audit log."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...messages import audit_log as audit_messages
from ...schemas.admin import ChangeOut
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..receipts.audit_verify import verify_command


class AuditCommand(ClientCommand, click.Group):
    """The listing, which is the default, and the commands below it."""


@click.group("audit", cls=AuditCommand, invoke_without_command=True)
@click.option("--who", default="", metavar="NAME", help="Only changes by this user.")
@click.option("--action", default="", metavar="WHAT", help="Only this action, such as 'group set'.")
@click.option("--target", default="", metavar="NAME", help="Only changes of this group, user, …")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The newest N.",
    metavar="N",
)
@json_option
@site_option
@click.pass_context
def audit_command(
    context: click.Context,
    *,
    who: str,
    action: str,
    target: str,
    limit: int,
    as_json: bool,
    site: str | None,
) -> None:
    """Show changes of groups, teachers, users, devices and requests of other users.

    Newest first, for administrators. `cli:NAME` is a user at the command line of the machine
    itself, `carrel` the service.

    \b
    Examples:
      carrel audit
      carrel audit --target cs101 --action 'group set'
      carrel audit verify
    """
    if context.invoked_subcommand is not None:
        return
    with Client.from_environment(site) as client:
        found = client.audit(who=who, action=action, target=target, limit=limit)
    if as_json:
        display.as_json(found)
        return
    now = time.time()
    rows = [
        [
            display.exact_time(change.at, now),
            change.who,
            change.action,
            change.target,
            _difference(change, now),
            change.why,
        ]
        for change in found.changes
    ]
    if rows:
        display.table(["WHEN", "WHO", "WHAT", "ABOUT", "CHANGE", "WHY"], rows)
    else:
        click.echo("The audit log has no such changes.")


def _difference(change: ChangeOut, now: float) -> str:
    found = audit_messages.differences(
        change.before, change.after, lambda at: display.local_time(at, now)
    )
    return ", ".join(f"{name}: {' -> '.join(sides)}" for name, sides in found)


audit_command.add_command(verify_command)


COMMANDS: dict[str, click.Command] = {"audit": audit_command}
