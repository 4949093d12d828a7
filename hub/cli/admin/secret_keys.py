"""``carrel rotate-keys``: encrypt what the database keeps secret under a new key."""

from __future__ import annotations

import click

from ...config.state_folder import StateFolder
from ...secrets.cipher import Cipher
from ..common import display
from ..common.operator_options import state_option
from ..common.site_store import site_store

_KEPT_KEYS = 2
"""The new key, and the one before it, for a value that the service stores at this moment."""


@click.command("rotate-keys")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def rotate_keys(state: StateFolder, as_json: bool) -> None:
    """Encrypt secrets and notification addresses under a new key, while the site runs or not.

    The new key is added to encryption.keys in the state folder. Of the older ones the last is kept;
    a second call removes it. Copies of older keys decrypt older backups of the database only.

    \b
    Example:
      carrel rotate-keys
    """
    cipher = Cipher(state.encryption_keys)
    with site_store(state) as store:
        cipher.add_key()
        count = store.renew_secrets(cipher.renew)
    cipher.drop_keys(keep=_KEPT_KEYS)
    if as_json:
        display.as_json({"renewed": count})
    else:
        click.echo(f"Values that are encrypted under a new key: {count}.")


COMMANDS = {"rotate-keys": rotate_keys}
