"""The stored settings of one installation.

The state folder holds everything that belongs to an installation:

    STATE/settings.json   settings of the first start, with ports; edit while Carrel is stopped
    STATE/carrel.toml     optional configuration of the site; overrides settings.json
    STATE/secrets.json    tokens between the three processes (0600)
    STATE/signing-key.pem private key of the signatures of this site (0600)
    STATE/log-head.json   size and root of the head of the log that was signed last (0600)
    STATE/run-time-model.json   model of run times, fitted again each day; may be deleted
    STATE/learned-orders/NAME.json   optional weights of learned queue orders
    STATE/jupyterhub_config.py   optional JupyterHub configuration of the site
    STATE/hub/            JupyterHub's database and cookie secret, and the embedded accounts
    STATE/carrel.db       Carrel's database
    STATE/homes/USER      homes
    STATE/disks/USER.ext4 disk images of homes, if the site limits the size of homes
    STATE/courses/GROUP/data   course data, mounted at /course in containers of the group
    STATE/courses/.blobs  released and submitted files, by the SHA-256 of their contents
    STATE/compile-caches/USER    what users' jobs have compiled with PyTorch; may be deleted
    STATE/outputs/ID      inputs, outputs and logs of requests
    STATE/reports         reports of past months; may be deleted
    STATE/logs            logs of the three processes and of sessions
    STATE/run             lock, process ids
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Self

from ..errors import InvalidInput
from ..files.private_file import write_private
from .base_url import parse_base_url
from .device_costs import DeviceModelCost, parse_device_costs
from .state_folder import StateFolder

CLAIM_SECONDS = 600.0
"""The default claim window."""
IDLE_COUNTDOWN_SECONDS = 600.0
USE_HALF_LIFE_SECONDS = 7 * 86400.0
PREEMPTION_GRACE_SECONDS = 120.0
CALLS_PER_SECOND = 20.0
LOG_HEAD_SECONDS = 3600.0
COMPILE_CACHE_BYTES = 256 << 20
LOCALHOST = "127.0.0.1"
CONTACT = (
    "No account, or forgotten your password? Ask the administrator of this site, or your teacher."
)


class EngineKind(StrEnum):
    """The engine that runs sessions and jobs."""

    LOCAL = "local"
    DOCKER = "docker"
    SLURM = "slurm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The stored settings of an installation, chosen at its first start.

    Attributes:
        ip: the IP address on which the proxy serves browsers and clients.
        port: the port on which the proxy serves browsers and clients.
        base_url: the path of the site behind another proxy, such as `/jupyter/`.
        hub_port, service_port, proxy_api_port: internal ports of the three processes, the first
            two on `internal_ip`, the last on 127.0.0.1; chosen at the first start.
        engine: `local` (processes of this account), `docker` (containers) or `slurm` (jobs of a
            Slurm cluster).
        internal_ip: the IP address on which JupyterHub and the service listen; with containers,
            the address of this host on the installation's own network. Set by `carrel up`.
        docker_host: the Docker engine of this machine, as of the last `carrel up`; kept because
            the shell that stops the site may have another DOCKER_HOST, or none. Overridden by
            carrel.toml.
        docker_subnets: the address range for the Docker networks of the installation; chosen at
            the first start with containers.
        demo: create sample accounts and a sample group, and mark the pages as a demo.
        simulated_devices: the number of simulated devices; null uses the devices that the driver
            reports.
        validate_devices: whether free devices are measured for about 20 seconds after a boot, after
            failures, after hours without work, and before a release from quarantine.
        claim_seconds: the claim window: how long a granted device is held for an owner who has to
            claim it, in seconds.
        idle_countdown_seconds: the time between the warning of an idle session with devices and
            its end, in seconds.
        use_half_life_seconds: the half-life of past usage in the fair-share order, in seconds.
        preemption_grace_seconds: the grace period between a preemption notice and the stop of the
            preempted request, in seconds.
        calls_per_second: the limit of HTTP calls of each user, on average; calls for ten seconds
            may come at once. A call that uses more than 10 ms of processor time counts as several.
            An address without a sign-in may make five times as many. 0: no limit.
        contact: plain text on the sign-in page: how to get an account or a new password. A demo
            shows where to find the sample passwords instead.
        backup_folder: the folder in which the page *Backup* creates backups; empty: beside the
            state folder, as `STATE.backups`.
        log_head_seconds: the time between two heads of the log that can be proved, in seconds.
        log_heads_file: a file outside the state folder to which each head is appended as a line of
            JSON; empty for none.
        log_heads_command: a command that reads each head as a line of JSON, such as a script that
            commits it to a git remote or mails it; empty for none.
        device_models: a table of device models with `price_per_device_hour` and `watts`, such as
            `{"NVIDIA H100": {"price_per_device_hour": 2.5, "watts": 700}}`: the report for
            administrators then shows money and kWh.
        currency: the unit of the prices, such as `EUR`.
        monthly_report: write the report of each month, as CSV and HTML, to `STATE/reports` when the
            month is over, and notify administrators who have chosen that.
        learned_order: the name of a learned queue order, an experiment: the file
            `STATE/learned-orders/NAME.json`; empty for none. A damaged file is logged and ignored.
        compile_cache_bytes: the most bytes of compiled code that are kept for each user: what their
            jobs compile with PyTorch, for their next jobs. 0: nothing is kept. What is there beyond
            that is deleted at the next start.
        log: the format of the service's log, `text` or `json`; overridden by CARREL_LOG.
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
    validate_devices: bool = True
    claim_seconds: float = CLAIM_SECONDS
    idle_countdown_seconds: float = IDLE_COUNTDOWN_SECONDS
    use_half_life_seconds: float = USE_HALF_LIFE_SECONDS
    preemption_grace_seconds: float = PREEMPTION_GRACE_SECONDS
    calls_per_second: float = CALLS_PER_SECOND
    contact: str = CONTACT
    backup_folder: str = ""
    log_head_seconds: float = LOG_HEAD_SECONDS
    log_heads_file: str = ""
    log_heads_command: str = ""
    device_models: Mapping[str, DeviceModelCost] = field(default_factory=dict)
    currency: str = ""
    monthly_report: bool = False
    learned_order: str = ""
    compile_cache_bytes: int = COMPILE_CACHE_BYTES
    log: str = "text"

    @property
    def url(self) -> str:
        """The public address, with a trailing slash."""
        return f"http://{self.ip}:{self.port}{self.base_url}"

    @property
    def public_service_url(self) -> str:
        """The service as browsers and clients reach it, through the proxy; no trailing slash."""
        return f"http://{self.ip}:{self.port}{self.base_url}services/carrel"

    @property
    def service_prefix(self) -> str:
        """The path of the service's pages, with a slash at both ends."""
        return f"{self.base_url}services/carrel/"

    @property
    def service_url(self) -> str:
        """The service as JupyterHub, runners and supervisor reach it; no trailing slash."""
        return f"http://{self.internal_ip}:{self.service_port}{self.base_url}services/carrel"

    @property
    def hub_api_url(self) -> str:
        """JupyterHub's REST API, without the proxy; no trailing slash."""
        return f"{self.hub_url}{self.base_url}hub/api"

    @property
    def hub_url(self) -> str:
        """JupyterHub, without the proxy; no trailing slash."""
        return f"http://{self.internal_ip}:{self.hub_port}"

    @property
    def session_service_url(self) -> str:
        """The service as programs in sessions reach it: containers cannot reach the proxy."""
        return self.public_service_url if self.engine is EngineKind.LOCAL else self.service_url

    @classmethod
    def load(cls, state: StateFolder) -> Self:
        """Load the settings. Raises InvalidInput if the file is missing or not valid."""
        try:
            found = json.loads(state.settings.read_text(encoding="utf-8-sig"))
            found["engine"] = EngineKind(found.get("engine", EngineKind.LOCAL))
            found["base_url"] = parse_base_url(found.get("base_url", "/"))
            found["device_models"] = parse_device_costs(found.get("device_models", {}))
            return cls(**found)
        except FileNotFoundError:
            raise InvalidInput(
                f"There is no Carrel installation in {state.root}.",
                accepted=f"Start one with: carrel up --state {state.root}",
            ) from None
        except (ValueError, TypeError) as error:
            known = ", ".join(f.name for f in fields(cls))
            raise InvalidInput(
                f"{state.settings} cannot be read: {error}.", accepted=f"Accepted keys: {known}."
            ) from error

    def save(self, state: StateFolder) -> None:
        """Write the settings to the state folder, readable for the owner only."""
        write_private(state.settings, json.dumps(asdict(self), indent=2) + "\n")

    def changed(self, **changes: object) -> Self:
        """Return a copy with these settings replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]  # names are checked at run time
