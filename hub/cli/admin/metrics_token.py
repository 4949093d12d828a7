"""``carrel metrics-token``: what a monitoring system sends to read ``/metrics``."""

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
    """Print the token that reads the metrics of this installation, and nothing else.

    It is the entry `metrics_token` of secrets.json. For a new one, remove the entry while Carrel
    is down: the next start makes it.

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
