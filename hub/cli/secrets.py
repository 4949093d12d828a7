"""``carrel secret``: values that jobs and sessions reach by name."""

from __future__ import annotations

import sys
import time

import click

from ..client import Client
from ..errors import InvalidArgument, TooLarge
from ..schemas.secrets.bodies import SecretOut
from .common import display
from .common.client_command import ClientCommand, ListOptions, json_option, site_option

_MOST_BYTES = 64 << 10

group_option = click.option(
    "--group", default="", help="A secret of this group instead of your own (its teachers)."
)


@click.group("secret", cls=ListOptions)
def secret_command() -> None:
    """Secrets: tokens and keys that jobs and sessions reach by name, stored encrypted.

    No command and no page shows a value again. `carrel submit --secret NAME` uses one.

    \b
    Examples:
      carrel secret set HF_TOKEN
      carrel submit train.ipynb --secret HF_TOKEN:env
      carrel secret list
    """


@secret_command.command("set", cls=ClientCommand, short_help="Set or replace a secret.")
@click.argument("name")
@click.argument("extra", metavar="", nargs=-1)
@group_option
@json_option
@site_option
def set_secret(
    *, name: str, extra: tuple[str, ...], group: str, as_json: bool, site: str | None
) -> None:
    """Set a secret. Its value is prompted for, or read from standard input.

    One line end at the end of a value of one line is removed.

    \b
    Examples:
      carrel secret set HF_TOKEN
      carrel secret set DEPLOY_KEY < id_ed25519
      pass show wandb | carrel secret set WANDB_API_KEY --group cs101
    """
    if extra:
        raise InvalidArgument(
            "The value of a secret is not given on the command line, where other users can read "
            "it.",
            accepted=f"carrel secret set {name} asks for it. What you have typed is in the history "
            "of your shell: replace it where it comes from.",
        )
    value = _value(name)
    with Client.from_environment(site) as client:
        stored = client.set_secret(name, value, group=group)
    if as_json:
        display.as_json(stored)
    else:
        click.echo(f"Set {stored.name}{_of(stored)}. Use it with: --secret {stored.name}")


@secret_command.command("list", cls=ClientCommand, short_help="List secrets.")
@json_option
@site_option
def list_secrets(*, as_json: bool, site: str | None) -> None:
    """List your secrets and those of your groups; values are never shown.

    \b
    Examples:
      carrel secret list
      carrel secret list --json | jq -r .name
    """
    with Client.from_environment(site) as client:
        found = client.secrets()
    empty = "There are no secrets that you may use. Set one with: carrel secret set NAME"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            each.name,
            each.group or "you",
            f"{display.local_time(each.set_at, now)} by {each.set_by}",
            _last_use(each, now),
        ]
        for each in found
    ]
    display.table(["NAME", "OF", "SET", "LAST USED"], rows)


@secret_command.command("remove", cls=ClientCommand, short_help="Remove a secret.")
@click.argument("name")
@group_option
@json_option
@site_option
def remove_secret(*, name: str, group: str, as_json: bool, site: str | None) -> None:
    """Remove a secret. Jobs that use it and have not started will fail.

    \b
    Example:
      carrel secret remove HF_TOKEN
    """
    with Client.from_environment(site) as client:
        client.remove_secret(name, group=group)
    if as_json:
        display.as_json({"removed": name, "group": group})
    else:
        click.echo(f"Removed {name}{f' of {group}' if group else ''}.")


def _value(name: str) -> str:
    """Read the value from a prompt without echo, or from standard input."""
    if sys.stdin.isatty():
        value: str = click.prompt(f"Value of {name}", hide_input=True, err=True)
        return value
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise TooLarge(
            f"The value has more than {_MOST_BYTES >> 10} KiB.",
            accepted=f"At most {_MOST_BYTES >> 10} KiB: put more into a file of your home.",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(
            "The value is not text.", accepted="UTF-8. Encode binary data: base64 FILE | carrel …"
        ) from None
    line = text.removesuffix("\n").removesuffix("\r")
    return text if "\n" in line else line


def _of(secret: SecretOut) -> str:
    return f" of {secret.group}" if secret.group else ""


def _last_use(secret: SecretOut, now: float) -> str:
    if secret.used_at is None:
        return ""
    by = f" by {secret.used_by} in {secret.used_in}" if secret.used_by else ""
    return f"{display.local_time(secret.used_at, now)}{by}"


COMMANDS: dict[str, click.Command] = {"secret": secret_command}
