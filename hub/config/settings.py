"""Where one installation keeps its state, which ports it has, and its secrets.

Everything lies in one folder:

    STATE/settings.json   ports and choices of the first start; edit while Carrel is down
    STATE/carrel.toml     the site's own configuration, where there is any: it has the last word
    STATE/secrets.json    tokens between the three processes (0600)
    STATE/jupyterhub_config.py   the site's own settings for JupyterHub, where there are any
    STATE/hub/            JupyterHub's database and cookie secret, and the embedded accounts
    STATE/carrel.db       Carrel's database
    STATE/homes/USER      homes
    STATE/disks/USER.ext4 homes of a fixed size, where the site has set one
    STATE/courses/GROUP/data   what sessions and jobs of a group read below /course (containers)
    STATE/courses/.blobs  released and submitted files, by the SHA-256 of their contents
    STATE/outputs/ID      inputs, outputs and logs of requests
    STATE/logs            logs of the three processes and of sessions
    STATE/run             lock, process ids
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Self

from ..errors import InvalidInput
from ..files.private_file import write_private
from .base_url import parse_base_url
from .state_folder import StateFolder

CLAIM_SECONDS = 600.0
"""The claim window where nothing else was chosen."""
IDLE_COUNTDOWN_SECONDS = 600.0
USE_HALF_LIFE_SECONDS = 7 * 86400.0
PREEMPTION_GRACE_SECONDS = 120.0
LOCALHOST = "127.0.0.1"
CONTACT = (
    "No account, or the password forgotten? Ask the administrator of this site, or your teacher."
)


class EngineKind(StrEnum):
    """The engine that runs sessions and jobs."""

    LOCAL = "local"
    DOCKER = "docker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The stored settings of an installation, chosen at its first start.

    Attributes:
        ip: the address that people connect to (the proxy).
        port: where people connect (the proxy).
        base_url: the path of the site behind another proxy, such as `/jupyter/`.
        hub_port, service_port, proxy_api_port: between the three processes, the first two on
            ``internal_ip``, the last on 127.0.0.1; chosen at the first start.
        engine: `local` (processes of this account) or `docker` (containers).
        internal_ip: where the hub and the service listen and reach each other; with containers
            the address of this host on the installation's own network. Set by `carrel up`.
        docker_host: the engine of this machine, with which the last `carrel up` began: the
            shell that stops it may have no DOCKER_HOST, or another one. carrel.toml has the
            last word.
        docker_subnets: the range out of which the installation's Docker networks are cut; chosen
            at the first start with containers.
        demo: sample accounts and the sample group are made, and pages say that it is a demo.
        simulated_devices: devices to pretend; without a number the driver is asked.
        claim_seconds: the claim window: how long a device is held for an owner who has to
            come for it.
        idle_countdown_seconds: between the warning of a session that holds devices and does
            nothing, and its end.
        use_half_life_seconds: after how long past use counts half in who is served next.
        preemption_grace_seconds: between a preemption notice and the stop of the
            preempted request.
        contact: whom to ask for an account or a new password, as the sign-in page says it; plain
            text. A demo says where its sample passwords stand instead.
        log: form of the service's log, `text` or `json`; CARREL_LOG has the last word.
    """

    ip: str = "127.0.0.1"
    port: int = 8000
    base_url: str = "/"
    hub_port: int = 0
    service_port: int = 0
    proxy_api_port: int = 0
    engine: EngineKind = EngineKind.LOCAL
    internal_ip: str = LOCALHOST
    docker_host: str = ""
    docker_subnets: str = ""
    demo: bool = False
    simulated_devices: int | None = None
    claim_seconds: float = CLAIM_SECONDS
    idle_countdown_seconds: float = IDLE_COUNTDOWN_SECONDS
    use_half_life_seconds: float = USE_HALF_LIFE_SECONDS
    preemption_grace_seconds: float = PREEMPTION_GRACE_SECONDS
    contact: str = CONTACT
    log: str = "text"

    @property
    def url(self) -> str:
        """The public address, with a trailing slash."""
        return f"http://{self.ip}:{self.port}{self.base_url}"

    @property
    def public_service_url(self) -> str:
        """The service as people and command lines reach it (through the proxy)."""
        return f"http://{self.ip}:{self.port}{self.base_url}services/carrel"

    @property
    def service_prefix(self) -> str:
        """The path of the service's pages, with a slash at both ends."""
        return f"{self.base_url}services/carrel/"

    @property
    def service_url(self) -> str:
        """The service itself, for the hub, the runners and the supervisor; no trailing slash."""
        return f"http://{self.internal_ip}:{self.service_port}{self.base_url}services/carrel"

    @property
    def hub_api_url(self) -> str:
        """JupyterHub's REST API, directly."""
        return f"{self.hub_url}{self.base_url}hub/api"

    @property
    def hub_url(self) -> str:
        """JupyterHub, directly; no trailing slash."""
        return f"http://{self.internal_ip}:{self.hub_port}"

    @property
    def session_service_url(self) -> str:
        """The service as programs in sessions reach it: a container does not see the proxy."""
        return self.public_service_url if self.engine is EngineKind.LOCAL else self.service_url

    @classmethod
    def load(cls, state: StateFolder) -> Self:
        """Load the settings. Raises InvalidInput if the file is missing or not valid."""
        try:
            found = json.loads(state.settings.read_text(encoding="utf-8-sig"))
            found["engine"] = EngineKind(found.get("engine", EngineKind.LOCAL))
            found["base_url"] = parse_base_url(found.get("base_url", "/"))
            return cls(**found)
        except FileNotFoundError:
            raise InvalidInput(
                f"There is no Carrel in {state.root}.",
                accepted=f"Start one there with: carrel up --state {state.root}",
            ) from None
        except (ValueError, TypeError) as error:
            known = ", ".join(f.name for f in fields(cls))
            raise InvalidInput(
                f"{state.settings} cannot be read: {error}.", accepted=f"It may hold: {known}."
            ) from error

    def save(self, state: StateFolder) -> None:
        write_private(state.settings, json.dumps(asdict(self), indent=2) + "\n")

    def changed(self, **changes: object) -> Self:
        return replace(self, **changes)  # type: ignore[arg-type]  # names are checked at run time
