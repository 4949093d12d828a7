"""``carrel up`` and ``carrel down``."""

from __future__ import annotations

import click

from ...config.settings import EngineKind
from ...config.state_folder import StateFolder
from ...supervisor.down import down as take_down
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
    help="Backend for sessions and jobs: processes of this account, or containers.  "
    "[first start: local]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="When ready, print one line of JSON instead of text."
)
def up(
    *,
    state: StateFolder,
    port: int | None,
    demo: bool,
    simulated_devices: int | None,
    engine: str | None,
    as_json: bool,
) -> None:
    """Start Carrel on this machine, and keep it running.

    Three processes are started and watched: the proxy, JupyterHub and the Carrel service. One
    that dies is started again. When all are ready, the address is printed, and the passwords
    of accounts that were just made.

    What you choose here is kept in the state folder and holds for later starts too. Ctrl-C
    stops the three and leaves sessions and jobs running; the next start takes them over.
    `carrel down` stops those too.

    --json prints one line with: url, users (name, password if just made, role), devices (id,
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
            demo=demo,
            simulated_devices=simulated_devices,
            engine=None if engine is None else EngineKind(engine),
            json=as_json,
        )
    )


@click.command()
@state_option
def down(*, state: StateFolder) -> None:
    """Stop Carrel with all sessions and jobs.

    Stops the three processes of `carrel up`, then every session and job that runs on behalf of
    this state folder, and says which. Their requests end as cancelled and their devices are
    free. Requests that still wait in the queue are kept, and start with the next `carrel up`.

    \b
    Examples:
      carrel down
      carrel down --state /srv/carrel
    """
    take_down(state, click.echo)


COMMANDS: dict[str, click.Command] = {"up": up, "down": down}
