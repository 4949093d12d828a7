"""``carrel quote``: predict the wait of a request without submitting it."""

from __future__ import annotations

import click

from ...client import Client
from ...messages import units
from ...schemas import QuoteIn, QuoteOut
from ..common import display
from ..common.client_command import ClientCommand, DeviceCount, json_option, site_option
from ..common.request_options import group_option, hours_option, model_field, model_option


@click.command("quote", cls=ClientCommand)
@click.option(
    "--devices",
    type=DeviceCount(min=0),
    multiple=True,
    default=(1,),
    show_default="1",
    help="Whole devices (GPUs), 0 for CPU; may be repeated, to compare.",
)
@model_option
@hours_option
@group_option
@click.option("--job", is_flag=True, help="Quote a job instead of a session; sessions start first.")
@json_option
@site_option
def quote_command(
    *,
    devices: tuple[int, ...],
    model: str | None,
    hours: float,
    group: str,
    job: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Show how long a session (or a job) would wait, and what it would use, without submitting.

    \b
    Examples:
      carrel quote --devices 1 --hours 2
      carrel quote --devices 1 --model "NVIDIA H200"
      carrel quote --devices 0 --devices 1 --devices 2 --json
    """
    seconds = max(1, round(hours * 3600))
    kind = "job" if job else "session"
    common = {"kind": kind, "group": group, "seconds": seconds} | model_field(model)
    requests = [QuoteIn.model_validate(common | {"devices": each}) for each in devices]
    with Client.from_environment(site) as client:
        found = client.quotes(requests)
    if as_json:
        display.as_json({"quotes": found})
        return
    for each in found:
        click.echo(_quoted(each))


def _quoted(found: QuoteOut) -> str:
    what = units.devices(found.devices)
    if not found.admitted:
        return f"{what}: refused. {found.sentence}"
    uses = f" Uses up to {units.device_hours(found.device_seconds)}." if found.devices else ""
    return f"{what}: {found.sentence}{uses}"


COMMANDS: dict[str, click.Command] = {"quote": quote_command}
