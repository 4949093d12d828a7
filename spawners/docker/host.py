"""What ``carrel up``, ``down`` and ``doctor`` ask of Docker, whether a service runs or not."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Final

from ...hub.errors import BackendFailed, Unavailable
from ...hub.files.home_folders import release
from ...hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from ...hub.interfaces.host import Addresses
from ...hub.records.diagnostics import Finding
from .containers.firewall import Firewall
from .containers.late_mounts import places_of
from .containers.networks import Networks
from .containers.subnets import free_range, has_address, taken
from .containers.template import LABEL, lease_of
from .doctor.doctor import Doctor
from .engine.client import DockerClient, ListedContainer
from .engine.images import images_on, tools
from .nodes.node import wall_of
from .nodes.orphans import keep_log

log = logging.getLogger(__name__)

_STEPS: Final = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 5.0))
_ASK_SECONDS: Final = 0.1


def create(settings: BackendSettings) -> DockerHostSetup:
    """Entry point (group ``carrel.host_setups``)."""
    assert settings.docker is not None
    return DockerHostSetup(settings, settings.docker)


class DockerHostSetup:
    """The engines of an installation."""

    def __init__(self, settings: BackendSettings, options: DockerOptions) -> None:
        self._settings = settings
        self._options = options
        self._engines = tuple(DockerClient(host) for host in options.hosts)

    def prepare(self, subnets: str) -> Addresses:
        engine, address = self._engines[0], self._options.address
        if address and not has_address(address):
            raise Unavailable(
                f"This machine does not have the address {address} that carrel.toml says.",
                accepted="`ip address` lists those that it has.",
            )
        subnets = subnets or free_range(taken(engine), self._settings.installation)
        if address:
            return Addresses(subnets=subnets, internal_ip=address)
        networks = Networks(
            engine=engine, installation=self._settings.installation, subnets=subnets
        )
        return Addresses(subnets=subnets, internal_ip=networks.ensure_hub())

    def running(self) -> tuple[str, ...]:
        return tuple(sorted(lease for lease, _, _ in self._running()))

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        wanted = frozenset(lease_ids)
        for number, seconds in _STEPS:
            left = [one for one in self._running() if one[0] in wanted]
            for _, engine, container in left:
                engine.kill(container.id, number.name)
            deadline = time.monotonic() + seconds
            while left and time.monotonic() < deadline:
                time.sleep(_ASK_SECONDS)
                left = [one for one in self._running() if one[0] in wanted]
            if not left:
                return ()
        return tuple(sorted(lease for lease, _, _ in left))

    def clear(self) -> None:
        for engine, host in zip(self._engines, self._options.hosts, strict=True):
            for each in engine.containers({LABEL: self._settings.installation}):
                if not each.running or not lease_of(each.name, each.labels):
                    keep_log(engine, each, self._settings.state)
                    engine.remove(each.id)
            for network in engine.networks(f"{LABEL}={self._settings.installation}"):
                engine.remove_network(network.id)
            self._tear_down(engine, host)
        places_of(self._settings).release()
        release(self._settings.state / "homes")

    def findings(self) -> Iterator[Finding]:
        for engine, host in zip(self._engines, self._options.hosts, strict=True):
            yield from Doctor(engine=engine, host=host, settings=self._settings).findings()

    def _tear_down(self, engine: DockerClient, host: DockerHost) -> None:
        """The wall, last: until here something might still have stood behind it."""
        default = self._options.image
        wall = wall_of(self._settings.installation, self._options, host)
        try:
            image = tools(images_on(engine, default), node=engine.node)
            Firewall(engine=engine, wall=wall).take_away(image)
        except BackendFailed as error:
            # Where it cannot be taken away it could not be built; one that is left holds nothing.
            log.warning(
                "The table inet %s on %s was not removed: %s", wall.table, engine.node, error
            )

    def _running(self) -> Iterator[tuple[str, DockerClient, ListedContainer]]:
        """Those that have a lease, which comes first."""
        for engine in self._engines:
            for each in engine.containers({LABEL: self._settings.installation}):
                lease = lease_of(each.name, each.labels)
                if lease and each.running:
                    yield lease, engine, each
