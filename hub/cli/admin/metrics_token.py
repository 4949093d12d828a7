"""``carrel metrics-token``: print the token for ``/metrics``."""

from __future__ import annotations

import click

from ...config.secrets import Secrets
from ...config.state_folder import StateFolder
from ..common import display
from ..common.operator_options import existing, state_option


@click.command("metrics-token")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def metrics_token(state: StateFolder, as_json: bool) -> None:
    """Print the token for the metrics of this installation, which allows nothing else.

    It is the entry `metrics_token` of secrets.json. To replace it, remove the entry while Carrel
    is stopped: the next start creates a new one.

    \b
    Example:
      carrel metrics-token > /etc/prometheus/carrel.token
    """
    settings = existing(state)
    token = Secrets.ensure(state).metrics_token
    if as_json:
        display.as_json({"token": token, "url": f"{settings.public_service_url}/metrics"})
    else:
        click.echo(token)


COMMANDS = {"metrics-token": metrics_token}
