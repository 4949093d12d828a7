"""``carrel up``."""

from __future__ import annotations

import click

from ...config.settings import EngineKind
from ...config.state_folder import StateFolder
from ...supervisor.up import UpOptions
from ...supervisor.up import up as bring_up
from ..common.operator_options import state_option


@click.command()
@state_option
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Port on 127.0.0.1 for users; 0 for any free port.  [first start: 8000]",
)
@click.option(
    "--base-url",
    metavar="PATH",
    help="Path of the site behind another proxy, such as /jupyter/, which passes it on.  "
    "[first start: /]",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Create sample accounts and the group cs101; without a GPU, 2 simulated devices.",
)
@click.option(
    "--simulated-devices",
    metavar="N",
    type=click.IntRange(0, 64),
    help="Simulate N devices instead of detecting devices.",
)
@click.option(
    "--engine",
    type=click.Choice([each.value for each in EngineKind]),
    help="Backend for sessions and jobs: processes of this account, containers, or jobs of Slurm.  "
    "[first start: local]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="When ready, print one line of JSON instead of text."
)
def up(
    *,
    state: StateFolder,
    port: int | None,
    base_url: str | None,
    demo: bool,
    simulated_devices: int | None,
    engine: str | None,
    as_json: bool,
) -> None:
    """Start Carrel on this machine, and keep it running.

    Starts and supervises three processes: the proxy, JupyterHub and the Carrel service. A process
    that ends is restarted. When all are ready, it prints the address, and the passwords of new
    accounts.

    The options are stored in the state folder and apply to later starts too. Ctrl-C stops the
    three processes and leaves sessions and jobs running; the next start takes them over.
    `carrel down` stops those too.

    --json prints one line with: url, users (name, password if new, role), devices (id,
    model, simulated), state. Everything else goes to stderr then.

    \b
    Examples:
      carrel up --demo
      carrel up --state /srv/carrel --port 8123
      carrel up --state /srv/carrel --engine docker
      carrel up --demo --state /tmp/try --port 0 --simulated-devices 1 --json
    """
    bring_up(
        UpOptions(
            state=state,
            port=port,
            base_url=base_url,
            demo=demo,
            simulated_devices=simulated_devices,
            engine=None if engine is None else EngineKind(engine),
            json=as_json,
        )
    )


COMMANDS: dict[str, click.Command] = {"up": up}
