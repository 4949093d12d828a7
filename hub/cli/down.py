"""``carrel down``."""

from __future__ import annotations

import click

from ..config.state_folder import StateFolder
from ..supervisor.down import down as take_down
from .common.operator_options import state_option


@click.command()
@state_option
def down(*, state: StateFolder) -> None:
    """Stop Carrel with all sessions and jobs.

    Stops the three processes of `carrel up`, then all sessions and jobs of this state folder,
    and lists them. Their requests end as cancelled and their devices are released. Queued
    requests are kept, and start after the next `carrel up`.

    \b
    Examples:
      carrel down
      carrel down --state /srv/carrel
    """
    take_down(state, click.echo)


COMMANDS: dict[str, click.Command] = {"down": down}
