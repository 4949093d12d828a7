"""The three processes: their command lines, their environment, and when they are ready."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from ..config.secrets import Secrets
from ..config.settings import Settings
from ..config.state_folder import StateFolder
from .child_process import Component

HUB_CONFIG = Path(__file__).parents[1] / "jupyterhub" / "config.py"
_ASK_SECONDS = 1.0
# Carrel that is started from inside a session must not inherit that session's identity.
_NOT_HANDED_ON = ("JUPYTERHUB_", "CONFIGPROXY_", "CARREL_", "JPY_", "MAKE", "MFLAGS")


def parts(
    state: StateFolder, settings: Settings, secrets: Secrets, proxy_command: tuple[str, ...]
) -> tuple[Component, ...]:
    """In the order in which they are started."""
    environment = {**clean(os.environ), "CARREL_STATE": str(state.root)}
    ask = ReadinessProbes(settings, secrets)
    return (
        Component(
            name="proxy",
            title="the proxy",
            command=(*proxy_command, *_proxy_arguments(settings)),
            environment={**environment, "CONFIGPROXY_AUTH_TOKEN": secrets.proxy_token},
            ready=ask.proxy,
            settled=ask.hub_to_restore_routes,
        ),
        Component(
            name="hub",
            title="JupyterHub",
            command=(sys.executable, "-m", "jupyterhub", "-f", str(HUB_CONFIG)),
            environment=environment,
            ready=ask.hub,
        ),
        Component(
            name="service",
            title="the Carrel service",
            command=(sys.executable, "-m", "carrel.hub.app", "--state", str(state.root)),
            environment=environment,
            ready=ask.service,
        ),
    )


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environment.items() if not k.startswith(_NOT_HANDED_ON)}


class ReadinessProbes:
    """One short request each, answered by yes or no."""

    def __init__(self, settings: Settings, secrets: Secrets) -> None:
        self._settings = settings
        self._secrets = secrets
        # One for all: each would read the certificates of the system anew, which takes longer than
        # the answer. A part that was killed leaves no connection behind.
        # trust_env: a proxy for the outside world has no business between these.
        self._client = httpx.Client(
            trust_env=False,
            timeout=_ASK_SECONDS,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def proxy(self) -> bool:
        url = f"http://127.0.0.1:{self._settings.proxy_api_port}/api/routes"
        return self._get(url, self._secrets.proxy_token)

    def hub(self) -> bool:
        return self._get(self._settings.hub_api_url)

    def service(self) -> bool:
        return self._get(f"{self._settings.service_url}/api/v1/health")

    def everything(self) -> bool:
        """The service answers where people will ask it: through the proxy."""
        return self._get(f"{self._settings.public_service_url}/api/v1/health")

    def hub_to_restore_routes(self) -> bool:
        """A new proxy knows no routes. A hub that does not answer restores them by itself
        when it is back, but this is asked again until one has said yes."""
        return self._ask("POST", f"{self._settings.hub_api_url}/proxy", self._secrets.service_token)

    def _get(self, url: str, token: str = "") -> bool:
        return self._ask("GET", url, token)

    def _ask(self, method: str, url: str, token: str) -> bool:
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
        # What no route matches is the hub's, and its page says that it is starting or gone.
        *("--default-target", settings.hub_url),
        *("--error-target", f"{settings.hub_url}/hub/error"),
        *("--log-level", "warn"),
    )
