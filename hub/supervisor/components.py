"""The three processes: their command lines, environments and readiness probes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from ..config.base_url import VARIABLE
from ..config.secrets import Secrets
from ..config.settings import Settings
from ..config.state_folder import StateFolder
from .child_process import Component

HUB_CONFIG = Path(__file__).parents[1] / "jupyterhub" / "config.py"
_PROBE_SECONDS = 1.0
_LIVENESS_SECONDS = 10.0
"""A busy component is slow; one that hangs does not respond at all."""
# If Carrel is started from inside a session, it must not inherit that session's identity.
_NOT_INHERITED = ("JUPYTERHUB_", "CONFIGPROXY_", "CARREL_", "JPY_", "MAKE", "MFLAGS")


def parts(
    state: StateFolder, settings: Settings, secrets: Secrets, proxy_command: tuple[str, ...]
) -> tuple[Component, ...]:
    """Return the components in the order in which they are started."""
    environment = {
        **clean(os.environ),
        "CARREL_STATE": str(state.root),
        VARIABLE: settings.base_url,
    }
    probes = ReadinessProbes(settings, secrets)
    liveness = ReadinessProbes(settings, secrets, seconds=_LIVENESS_SECONDS)
    return (
        Component(
            name="proxy",
            title="the proxy",
            command=(*proxy_command, *_proxy_arguments(settings)),
            environment={**environment, "CONFIGPROXY_AUTH_TOKEN": secrets.proxy_token},
            ready=probes.proxy,
            alive=liveness.proxy,
            settled=probes.restore_routes,
        ),
        Component(
            name="hub",
            title="JupyterHub",
            command=(sys.executable, "-P", "-m", "jupyterhub", "-f", str(HUB_CONFIG)),
            environment=environment,
            ready=probes.hub,
            alive=liveness.hub,
        ),
        Component(
            name="service",
            title="the Carrel service",
            command=(sys.executable, "-P", "-m", "carrel.hub.app", "--state", str(state.root)),
            environment=environment,
            ready=probes.service,
            alive=liveness.service_process,
        ),
    )


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environment.items() if not k.startswith(_NOT_INHERITED)}


class ReadinessProbes:
    """Readiness probes: one short HTTP request per component."""

    def __init__(
        self, settings: Settings, secrets: Secrets, *, seconds: float = _PROBE_SECONDS
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        # One client for all: a new one loads the system's certificates, which takes longer than
        # the request. Without keep-alive, a killed component leaves no broken connection.
        # trust_env=False: these requests must not go through an HTTP proxy of the environment.
        self._client = httpx.Client(
            trust_env=False,
            timeout=seconds,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def proxy(self) -> bool:
        url = f"http://127.0.0.1:{self._settings.proxy_api_port}/api/routes"
        return self._get(url, self._secrets.proxy_token)

    def hub(self) -> bool:
        return self._get(self._settings.hub_api_url)

    def service(self) -> bool:
        return self._get(f"{self._settings.service_url}/api/v1/health")

    def service_process(self) -> bool:
        """Whether the process of the service responds, however busy its threads are."""
        return self._get(f"{self._settings.service_url}/healthz")

    def everything(self) -> bool:
        """Whether the service responds at its public address, through the proxy."""
        return self._get(f"{self._settings.public_service_url}/api/v1/health")

    def restore_routes(self) -> bool:
        """Make JupyterHub add its routes to a restarted proxy, which has none.

        A hub that does not respond restores them when it starts; the call is repeated until it
        succeeds anyway.
        """
        return self._succeeds(
            "POST", f"{self._settings.hub_api_url}/proxy", self._secrets.service_token
        )

    def _get(self, url: str, token: str = "") -> bool:
        return self._succeeds("GET", url, token)

    def _succeeds(self, method: str, url: str, token: str) -> bool:
        headers = {"Authorization": f"token {token}"} if token else {}
        try:
            return self._client.request(method, url, headers=headers).is_success
        except httpx.HTTPError:
            return False


def everything_ready(settings: Settings, secrets: Secrets) -> Callable[[], bool]:
    return ReadinessProbes(settings, secrets).everything


def _proxy_arguments(settings: Settings) -> tuple[str, ...]:
    return (
        *("--ip", settings.ip),
        *("--port", str(settings.port)),
        *("--api-ip", "127.0.0.1"),
        *("--api-port", str(settings.proxy_api_port)),
        # Unmatched routes go to JupyterHub, whose page explains that a server starts or ended.
        *("--default-target", settings.hub_url),
        *("--error-target", f"{settings.hub_url}{settings.base_url}hub/error"),
        *("--log-level", "warn"),
    )
