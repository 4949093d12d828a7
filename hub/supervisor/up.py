"""``carrel up``: runs the control plane of a state folder until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from ..accounts import demo
from ..accounts.store import Accounts
from ..config.base_url import parse_base_url
from ..config.lost_state import refuse_lost_state
from ..config.secrets import Secrets
from ..config.settings import EngineKind, Settings
from ..config.state_folder import StateFolder
from ..errors import Unavailable
from ..schemas import DeviceOut, PoolOut
from ..store import open_store
from ..supervisor.stale import stop_stale
from . import host as engine
from . import proxy, tcp_ports
from .components import everything_ready, parts
from .lock import locked
from .startup_message import Announcement, DemoPerson, command
from .supervisor import Supervisor

_POOL_SECONDS = 5.0
_SEEDED = "demo-accounts"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of the command line; None keeps the stored setting.

    Attributes:
        port: 0 chooses a free port, preferably that of the last start.
    """

    state: StateFolder
    port: int | None = None
    base_url: str | None = None
    demo: bool = False
    simulated_devices: int | None = None
    engine: EngineKind | None = None
    json: bool = False


def up(options: UpOptions) -> None:
    """Run until a signal arrives. Raises CarrelError if the start fails."""
    state = options.state
    refuse_lost_state(state)
    state.create()
    say = note if options.json else print_now
    with locked(state):
        stop_stale(state, note)
        settings = tcp_ports.settle(engine.with_network(state, choose(options), say), note)
        settings.save(state)
        secrets = Secrets.ensure(state)
        reachable = everything_ready(settings, secrets)
        supervisor = Supervisor(
            parts(state, settings, secrets, proxy.ensure()),
            logs=state.logs,
            run=state.run,
            say=note,
            ready=lambda: reachable() and (not settings.demo or sample_group_exists(state)),
        )
        say(f"Starting Carrel in {state.root} …")
        supervisor.run(lambda: _announce(options, settings, secrets))
        say(_left_behind(state, settings))


def choose(options: UpOptions) -> Settings:
    """Return the stored settings, overridden by the options of the command line."""
    known = options.state.settings.exists()
    found = Settings.load(options.state) if known else Settings()
    if options.port:
        found = found.changed(port=options.port)
    elif options.port == 0 and not (known and tcp_ports.is_free(found.ip, found.port)):
        found = found.changed(port=0)
    if options.base_url is not None:
        found = found.changed(base_url=parse_base_url(options.base_url))
    if options.demo:
        found = found.changed(demo=True)
    if options.simulated_devices is not None:
        found = found.changed(simulated_devices=options.simulated_devices)
    return engine.chosen(options.state, found, options.engine)


def sample_group_exists(state: StateFolder) -> bool:
    """Whether the service has created the sample group, which it does once JupyterHub responds."""
    with closing(open_store(state.database)) as store:
        return any(group.name == demo.DEMO_GROUP for group in store.groups())


def people(state: StateFolder, settings: Settings) -> tuple[DemoPerson, ...]:
    """Return all accounts; the first start of a demo creates the sample accounts."""
    with closing(Accounts(state.accounts)) as accounts:
        passwords: Mapping[str, str] = {}
        seeded = state.hub / _SEEDED
        if settings.demo and not seeded.exists():
            passwords = demo.make_demo_accounts(accounts)
            seeded.touch(mode=0o600)
        roles = {one.name: one.role for one in demo.DEMO_ACCOUNTS} if settings.demo else {}
        return tuple(
            DemoPerson(
                name=one.name,
                role="admin" if one.admin else roles.get(one.name, "user"),
                password=passwords.get(one.name),
            )
            for one in accounts.all()
        )


def devices(settings: Settings, secrets: Secrets) -> tuple[DeviceOut, ...] | None:
    """Return the devices of the pool, from the API of the service."""
    try:
        answer = httpx.get(
            f"{settings.service_url}/api/v1/pool",
            headers={"Authorization": f"token {secrets.hub_token}"},
            timeout=_POOL_SECONDS,
            trust_env=False,
        )
        answer.raise_for_status()
        return tuple(PoolOut.model_validate_json(answer.content).devices)
    except (httpx.HTTPError, ValidationError) as error:
        note(f"The devices of the pool could not be read: {error}.")
        return None


def note(text: str) -> None:
    """Print a message to stderr, since a program may read stdout."""
    with suppress(OSError):  # A message that cannot be written must not stop the site.
        print(text, file=sys.stderr, flush=True)


def print_now(text: str) -> None:
    with suppress(OSError):
        print(text, flush=True)


def _announce(options: UpOptions, settings: Settings, secrets: Secrets) -> None:
    announcement = Announcement(
        state=options.state,
        settings=settings,
        people=people(options.state, settings),
        devices=devices(settings, secrets),
    )
    print_now(announcement.as_json() if options.json else announcement.as_text())


def _left_behind(state: StateFolder, settings: Settings) -> str:
    try:
        count = len(engine.running(state, settings))
    except Unavailable as error:
        return f"Carrel has stopped. {error} The next start takes over its sessions and jobs."
    if not count:
        return "Carrel has stopped. No session and no job was running."
    running = "1 session or job runs" if count == 1 else f"{count} sessions and jobs run"
    return (
        f"Carrel has stopped; {running} on and will be taken over by the next start. "
        f"To stop them too: {command('down', state)}"
    )
