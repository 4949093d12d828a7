"""Create the networks of gangs across nodes: overlay networks of a Docker swarm.

Each has one job's members, and nothing else: no gateway, and no address of a host. The members
reach the service and the internet through a bridge on their own node, as other jobs do. The swarm
keeps the networks, so that one manager creates and removes them for all nodes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....hub.errors import BackendFailed
from ..engine.client import DockerClient, NameTaken, Network
from .template import LABEL, LEASE, OWNER

OVERLAY_PREFIX_LENGTH: Final = 27
"""Prefix length of an overlay network: thirteen members, and an address of each of their nodes."""
_SUBNET: Final = "carrel.subnet"
"""Label with the subnet, which the swarm lists only after it has assigned it."""
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmNetworks:
    """The overlay networks of an installation.

    Attributes:
        manager: an engine that manages the swarm.
        subnets: the installation's range, of which overlay networks have the last quarter.
    """

    manager: DockerClient
    installation: str
    subnets: str

    def ensure(self, owner: str, lease_id: str, engines: Sequence[DockerClient]) -> str:
        """Return the subnet of a gang's network; create it if needed.

        Two calls at a time could choose the same subnet.

        Args:
            engines: those of the members, whose bridges the subnet must not overlap.

        Raises:
            BackendFailed: the installation's range is exhausted.
        """
        name = overlay_name(self.installation, lease_id)
        for _ in range(_TRIES):
            known = self.manager.networks()
            if same := [network for network in known if network.name == name]:
                return same[0].labels[_SUBNET]
            used = [*known, *(network for engine in engines for network in engine.networks())]
            subnet = str(self._free(used))
            labels = {LABEL: self.installation, OWNER: owner, LEASE: lease_id, _SUBNET: subnet}
            try:
                self.manager.create_overlay(name, subnet=subnet, labels=labels)
            except NameTaken:
                continue  # A service that was killed had sent the call.
            return subnet
        raise BackendFailed(f"No network across nodes could be created for {lease_id}.")

    def remove_unused(self, live: Callable[[], Collection[str]]) -> None:
        """Remove the networks of leases that have ended.

        The swarm refuses to remove a network in use, so that the next call removes it.

        Args:
            live: returns the ids of the leases that hold devices; a lease is stored before its
                network is created.
        """
        if found := self.own():
            known = live()
            for network in found:
                if network.labels.get(LEASE) not in known:
                    self.manager.remove_network(network.id)

    def own(self) -> tuple[Network, ...]:
        found = self.manager.networks(f"{LABEL}={self.installation}")
        return tuple(network for network in found if network.overlay)

    def _free(self, used: Sequence[Network]) -> ipaddress.IPv4Network:
        taken = [
            ipaddress.IPv4Network(subnet)
            for network in used
            for subnet in (*network.subnets, network.labels.get(_SUBNET, ""))
            if subnet and ":" not in subnet
        ]
        for candidate in overlay_subnets(self.subnets):
            if not any(candidate.overlaps(network) for network in taken):
                return candidate
        raise BackendFailed(
            f"All networks across nodes in {self.subnets} are in use.",
            accepted="Set a larger docker_subnets in settings.json, such as a /16.",
        )


def overlay_name(installation: str, lease_id: str) -> str:
    """Return the name of the network across nodes of a gang.

    A swarm accepts what can be a label of a domain name, which has no dots.
    """
    return f"carrel-{installation}-swarm-{lease_id.replace('.', '_')}"


def overlay_subnets(subnets: str) -> Iterator[ipaddress.IPv4Network]:
    """Yield the subnets for overlay networks in the range of an installation."""
    *_, last = ipaddress.IPv4Network(subnets).subnets(prefixlen_diff=2)
    if last.prefixlen <= OVERLAY_PREFIX_LENGTH:
        yield from last.subnets(new_prefix=OVERLAY_PREFIX_LENGTH)
