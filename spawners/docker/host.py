"""Prepare and clear the Docker hosts for ``carrel up``, ``down`` and ``doctor``."""

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
from .containers.late_mounts import late_mounts_of
from .containers.networks import Networks
from .containers.subnets import free_range, has_address, used_networks
from .containers.template import LABEL, lease_of
from .doctor.doctor import Doctor
from .doctor.swarm_check import several_nodes
from .engine.client import DockerClient, ListedContainer
from .engine.images import images_on, tools_image
from .nodes.node import firewall_rules
from .nodes.orphans import keep_log
from .nodes.swarm import Swarm

log = logging.getLogger(__name__)

_STEPS: Final = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 5.0))
_POLL_SECONDS: Final = 0.1
_ADDRESS_SECONDS: Final = 5.0
"""Seconds after which a network without an address on this machine is created again."""


def create(settings: BackendSettings) -> DockerHostSetup:
    """Entry point (group ``carrel.host_setups``)."""
    assert settings.docker is not None
    return DockerHostSetup(settings, settings.docker)


class DockerHostSetup:
    """Prepares and clears the hosts of an installation's engines."""

    def __init__(self, settings: BackendSettings, options: DockerOptions) -> None:
        self._settings = settings
        self._options = options
        self._engines = tuple(DockerClient(host) for host in options.hosts)
        self._swarm = Swarm(self._engines, settings.installation, options.subnets)

    def prepare(self, subnets: str) -> Addresses:
        engine, address = self._engines[0], self._options.address
        if address and not has_address(address):
            raise Unavailable(
                f"This machine does not have the address {address} of carrel.toml.",
                accepted="Set one of the addresses that `ip address` lists.",
            )
        subnets = subnets or free_range(used_networks(engine), self._settings.installation)
        if address:
            return Addresses(subnets=subnets, internal_ip=address)
        networks = Networks(
            engine=engine, installation=self._settings.installation, subnets=subnets
        )
        return Addresses(subnets=subnets, internal_ip=_present(networks))

    def running(self) -> tuple[str, ...]:
        return tuple(sorted(lease for lease, _, _ in self._running_leases()))

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        stopping = frozenset(lease_ids)
        for number, seconds in _STEPS:
            left = [lease for lease in self._running_leases() if lease[0] in stopping]
            for _, engine, container in left:
                engine.kill(container.id, number.name)
            deadline = time.monotonic() + seconds
            while left and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                left = [lease for lease in self._running_leases() if lease[0] in stopping]
            if not left:
                return ()
        return tuple(sorted(lease for lease, _, _ in left))

    def clear(self) -> None:
        for engine, host in zip(self._engines, self._options.hosts, strict=True):
            self._clear(engine, host)
        self._swarm.remove_all()
        late_mounts_of(self._settings).release()
        release(self._settings.state / "homes")

    def clear_node(self, node: str) -> None:
        for engine, host in zip(self._engines, self._options.hosts, strict=True):
            if host.node == node:
                self._clear(engine, host)

    def _clear(self, engine: DockerClient, host: DockerHost) -> None:
        for container in engine.containers({LABEL: self._settings.installation}):
            if not container.running or not lease_of(container.name, container.labels):
                keep_log(engine, container, self._settings.state)
                engine.remove(container.id)
        for network in engine.networks(f"{LABEL}={self._settings.installation}"):
            if not network.overlay:
                engine.remove_network(network.id)
        self._remove_firewall(engine, host)

    def findings(self) -> Iterator[Finding]:
        for engine, host in zip(self._engines, self._options.hosts, strict=True):
            yield from Doctor(engine=engine, host=host, settings=self._settings).findings()
        if len(self._engines) > 1:
            self._swarm.refresh()
            yield several_nodes(self._swarm.connection())

    def _remove_firewall(self, engine: DockerClient, host: DockerHost) -> None:
        """Remove the firewall; call it last, when no container is left."""
        default = self._options.image
        rules = firewall_rules(self._settings.installation, self._options, host)
        try:
            image = tools_image(images_on(engine, default), node=engine.node)
            Firewall(engine=engine, rules=rules).remove(image)
        except BackendFailed as error:
            # Rules that are left match no network. (Where they cannot be removed, they usually
            # could not be set.)
            log.warning(
                "The table inet %s on %s was not removed: %s", rules.table, engine.node, error
            )

    def _running_leases(self) -> Iterator[tuple[str, DockerClient, ListedContainer]]:
        """Yield lease id, engine and container for every running container with a lease."""
        for engine in self._engines:
            for container in engine.containers({LABEL: self._settings.installation}):
                lease = lease_of(container.name, container.labels)
                if lease and container.running:
                    yield lease, engine, container


def _present(networks: Networks) -> str:
    """Ensure the network of the hub; return its address once this machine has it.

    An engine keeps a network of which the bridge was deleted, or which it could not set up.

    Raises:
        Unavailable: this machine does not have the address.
    """
    for _ in range(2):
        address = networks.ensure_hub()
        deadline = time.monotonic() + _ADDRESS_SECONDS
        while not has_address(address):
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
        else:
            return address
        if not networks.remove_hub():
            break
    raise Unavailable(
        f"This machine does not have the address {address} of the network {networks.hub_name}, "
        "which the Docker engine created.",
        accepted="The engine must run on this machine, as root; or set address in carrel.toml.",
    )
